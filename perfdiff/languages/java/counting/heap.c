/*
 * What the JVM itself counts of a thread's allocations, the JDK's methods included: the number that `ThreadMXBean` gives in 70 to 90 ns, read
 * where HotSpot tells its own tools that it lies, in some ns. Objects that compilers find to be needless are not in it.
 */
#include <dlfcn.h>
#include <string.h>

#include "../agent/java_probe.h"
#include "counts.h"

/* An entry of `gHotSpotVMStructs`, as its consumers read it. */
struct place {
	const char *type;
	const char *field;
	const char *declared;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

enum { ALLOCATED, BUFFER, TOP, START, OFFSETS };

static const struct {
	const char *type, *field;
} wanted[OFFSETS] = {
	[ALLOCATED] = {"Thread", "_allocated_bytes"}, /* up to the buffer that it allocates from now */
	[BUFFER] = {"Thread", "_tlab"},
	[TOP] = {"ThreadLocalAllocBuffer", "_top"},
	[START] = {"ThreadLocalAllocBuffer", "_start"},
};

static uint64_t offsets[OFFSETS];
static jclass thread_class;
static jmethodID current_thread;
static jfieldID native_thread;
static __thread const char *self __attribute__((tls_model("initial-exec"))); /* the JVM's own of this thread */
static __thread uint64_t last __attribute__((tls_model("initial-exec")));    /* of a thread that the JVM has no more */

/* Whether the JVM says where it counts. */
bool pd_heap_open(void)
{
	void *machine = dlopen("libjvm.so", RTLD_LAZY | RTLD_NOLOAD);
	const struct place *const *table = machine ? dlsym(machine, "gHotSpotVMStructs") : NULL;
	unsigned found = 0;

	for (const struct place *place = table ? *table : NULL; place && place->type; place++)
		for (unsigned i = 0; i < OFFSETS; i++)
			if (place->field && !strcmp(place->type, wanted[i].type) && !strcmp(place->field, wanted[i].field)) {
				offsets[i] = place->offset;
				found |= 1u << i;
			}
	return found == (1u << OFFSETS) - 1;
}

/* Nothing is read of a JVM whose threads do not tell where they are. */
void pd_heap_begin(JNIEnv *environment)
{
	jclass found = (*environment)->FindClass(environment, "java/lang/Thread");

	thread_class = found ? (*environment)->NewGlobalRef(environment, found) : NULL;
	if (thread_class)
		current_thread = (*environment)->GetStaticMethodID(environment, thread_class, "currentThread", "()Ljava/lang/Thread;");
	if (current_thread)
		native_thread = (*environment)->GetFieldID(environment, thread_class, "eetop", "J");
	if ((*environment)->ExceptionCheck(environment))
		(*environment)->ExceptionClear(environment);
}

/* To be called ahead of a thread's first probed call. */
void pd_heap_find(JNIEnv *environment)
{
	jobject thread;

	if (pd_likely(self) || !native_thread)
		return;
	thread = (*environment)->CallStaticObjectMethod(environment, thread_class, current_thread);
	if ((*environment)->ExceptionCheck(environment)) {
		(*environment)->ExceptionClear(environment);
		return;
	}
	self = (const char *)(uintptr_t)(*environment)->GetLongField(environment, thread, native_thread);
	(*environment)->DeleteLocalRef(environment, thread);
}

uint64_t pd_heap_bytes(void)
{
	uint64_t allocated, top, start;

	if (!self)
		return last;
	memcpy(&allocated, self + offsets[ALLOCATED], sizeof(allocated));
	memcpy(&top, self + offsets[BUFFER] + offsets[TOP], sizeof(top));
	memcpy(&start, self + offsets[BUFFER] + offsets[START], sizeof(start));
	return allocated + (top > start ? top - start : 0);
}

/* A thread of the system may go on without the JVM, and come back to it as another one. */
void pd_heap_lose(void)
{
	last = pd_heap_bytes();
	self = NULL;
}
