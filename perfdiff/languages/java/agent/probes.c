/*
 * The native methods of `java.lang.PerfdiffProbe`. A call is known by a number: its probe in the low bits, above it how many calls the thread
 * has entered, a bit that no address has, and the sign where the call's inputs are to be read. 0 is a call that is not recorded.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "java_probe.h"
#ifdef PD_PER_CALL
#include "../counting/counts.h"
#define settle pd_calls_settle
#define LEFT_OUT PD_NOT_COUNTED
#define find_heap pd_heap_find
#else
#define settle() ((void)0)
#define LEFT_OUT "calls in virtual threads are not recorded before Java 21"
#define find_heap(environment) ((void)(environment))
#endif

#define PROBE_BITS 20
#define PROBE_MASK ((UINT64_C(1) << PROBE_BITS) - 1)
#define NO_ADDRESS (UINT64_C(1) << 62)
#define IS_READ (UINT64_C(1) << 63)
#define ENTERED_BITS 30 /* of a thread's own calls; above them is its number, as a call may end in another one */
#define ABSENT INT64_C(0x7ff4e05eda7ab5e7) /* as PerfdiffProbe.ABSENT: a NaN that no computation makes */
#define PATH_BYTES 4096
#define TEXT_BYTES 2048

/* Of the kind that is found without a call. */
static __thread struct {
	uint64_t entered;
	struct pd_frame read; /* the call whose inputs are read */
} self __attribute__((tls_model("initial-exec")));

static atomic_uint threads;

static inline uint64_t call_enter(JNIEnv *environment, struct pd_frame *call, int *is_read)
{
	uint64_t number;

	if (pd_passes(call->probe))
		return 0;
	if (pd_unlikely(!pd_gates) && !pd_virtual_are_followed && !pd_thread_is_recorded(environment, LEFT_OUT))
		return 0;
	if (pd_unlikely(!self.entered))
		self.entered = (uint64_t)atomic_fetch_add(&threads, 1) << ENTERED_BITS;
	settle();
	find_heap(environment);
	number = NO_ADDRESS | (++self.entered << PROBE_BITS & ~(NO_ADDRESS | IS_READ)) | call->probe;
	*is_read = pd_enter_moving(call, (const void *)number);
	return call->entry ? number : 0;
}

/* Enters a call whose inputs nobody reads. */
JNIEXPORT jlong JNICALL Java_java_lang_PerfdiffProbe_begin(JNIEnv *environment, jclass type, jint probe)
{
	struct pd_frame call = {(unsigned)probe, 0, 0, 0};
	int is_read = 0;
	uint64_t number = call_enter(environment, &call, &is_read);

	(void)type;
	if (is_read)
		pd_start(&call);
	return (jlong)number;
}

/* Enters a call; below 0, its inputs are to be read, and `start` ends that. */
JNIEXPORT jlong JNICALL Java_java_lang_PerfdiffProbe_beginReading(JNIEnv *environment, jclass type, jint probe)
{
	struct pd_frame call = {(unsigned)probe, 0, 0, 0};
	int is_read = 0;
	uint64_t number = call_enter(environment, &call, &is_read);

	(void)type;
	if (!is_read)
		return (jlong)number;
	self.read = call;
	return (jlong)(number | IS_READ);
}

/* Whoever reads its inputs goes on in another thread. */
void pd_reading_drop(void)
{
	self.read.cells = self.read.entry = 0;
}

static inline void cell_put(unsigned cell, jlong value)
{
	if (value != ABSENT)
		pd_signed(&self.read, cell, value);
}

static inline void cells_put(unsigned first, jlong a, jlong b, jlong c, jlong d)
{
	if (!self.read.cells)
		return;
	cell_put(first, a);
	cell_put(first + 1, b);
	cell_put(first + 2, c);
	cell_put(first + 3, d);
}

JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_put(JNIEnv *environment, jclass type, jint first, jlong a, jlong b, jlong c, jlong d)
{
	(void)environment, (void)type;
	cells_put((unsigned)first, a, b, c, d);
}

/* The same, and the call starts: its inputs are read. */
JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_start(JNIEnv *environment, jclass type, jint first, jlong a, jlong b, jlong c, jlong d)
{
	(void)environment, (void)type;
	cells_put((unsigned)first, a, b, c, d);
	if (self.read.entry)
		pd_start(&self.read);
	pd_reading_drop();
}

/* Counts outcomes of four conditions; of those that no call has, none were met. */
JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_tellOutcomes(JNIEnv *environment, jclass type, jlong call, jint first, jint met,
								 jint held, jint met1, jint held1, jint met2, jint held2, jint met3,
								 jint held3)
{
	const void *key = (const void *)((uint64_t)call & ~IS_READ);
	const uint32_t counts[][2] = {{(uint32_t)met, (uint32_t)held}, {(uint32_t)met1, (uint32_t)held1},
				      {(uint32_t)met2, (uint32_t)held2}, {(uint32_t)met3, (uint32_t)held3}};
	unsigned each;

	(void)environment, (void)type;
	for (each = 0; each < 4; each++) {
		if (counts[each][0])
			pd_outcomes_keyed(key, (unsigned)first + each, counts[each][0], counts[each][1]);
	}
}

JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_end(JNIEnv *environment, jclass type, jlong call)
{
	uint64_t number = (uint64_t)call & ~IS_READ;

	(void)environment, (void)type;
	settle();
	pd_leave_keyed(number & PROBE_MASK, (const void *)number);
}

JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_goOn(JNIEnv *environment, jclass type, jlong call)
{
	uint64_t number = (uint64_t)call & ~IS_READ;

	(void)environment, (void)type;
	settle();
	pd_resume_keyed(number & PROBE_MASK, (const void *)number);
}

/* Copies a text that is not empty and fits; returns whether it is so. */
static bool copied(JNIEnv *environment, jstring from, char *text, size_t bytes)
{
	jsize length = (*environment)->GetStringUTFLength(environment, from);

	if (length <= 0 || (size_t)length >= bytes)
		return false;
	(*environment)->GetStringUTFRegion(environment, from, 0, (*environment)->GetStringLength(environment, from), text);
	text[length] = '\0';
	return true;
}

/* Names a type that is met for the first time. */
JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_tell(JNIEnv *environment, jclass class, jlong type, jstring name)
{
	char text[TEXT_BYTES];

	(void)class;
	if (copied(environment, name, text, sizeof(text)))
		pd_type_tell((const void *)type, text);
}

/* Marks that a test ended. */
JNIEXPORT void JNICALL Java_java_lang_PerfdiffProbe_mark(JNIEnv *environment, jclass class, jstring name)
{
	char text[TEXT_BYTES];

	(void)class;
	if (copied(environment, name, text, sizeof(text)))
		pd_mark(text);
}

/* Returns the bytes of the file that a path names. */
JNIEXPORT jlong JNICALL Java_java_lang_PerfdiffProbe_fileBytes(JNIEnv *environment, jclass class, jstring path)
{
	char text[PATH_BYTES];
	struct stat status;

	(void)class;
	return !copied(environment, path, text, sizeof(text)) || stat(text, &status) ? ABSENT : (jlong)status.st_size;
}
