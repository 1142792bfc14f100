/*
 * Threads' memory. A table leads from a thread's number to it; where the number there is another thread's, the thread asks for its own. What a
 * thread had that has ended goes to the next one, after it was emptied or, of counts of lines, to be counted on.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../agent/java_probe.h"
#include "counts.h"

#define TABLE 16384u /* as PerfdiffCounts.java's mask */
#define NOBODY UINT64_MAX

/* PERFDIFF_COUNTS_CLASS is the path of the class file. */
extern const unsigned char pd_counts_class[], pd_counts_class_end[];
__asm__(".section .rodata\n"
	".globl pd_counts_class\n.hidden pd_counts_class\npd_counts_class:\n.incbin \"" PERFDIFF_COUNTS_CLASS "\"\n"
	".globl pd_counts_class_end\n.hidden pd_counts_class_end\npd_counts_class_end:\n.previous\n");

struct free_memory {
	struct pd_counted *counted;
	struct free_memory *next;
};

static struct pd_counted *table[TABLE];
static struct pd_counted *nobodys; /* for threads whose counts are not kept */
static size_t bytes, functions;
static pthread_key_t key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct free_memory *released;
static __thread struct {
	struct pd_counted *own;
	struct free_memory *place; /* in the list of what was released */
	bool is_ending;
} self __attribute__((tls_model("initial-exec")));

struct pd_counted *pd_memory_own(void)
{
	return self.own;
}

/* The runtime's own end of a thread may come behind the first call of this, and reads what was counted. */
static void thread_ends(void *unused)
{
	if (!self.is_ending) {
		self.is_ending = true;
		pthread_setspecific(key, unused);
		return;
	}
	pthread_mutex_lock(&lock);
	self.own->thread = NOBODY;
	self.place->counted = self.own;
	self.place->next = released;
	released = self.place;
	pthread_mutex_unlock(&lock);
	self.own = NULL;
}

static struct free_memory *reused(void)
{
	struct free_memory *found;

	pthread_mutex_lock(&lock);
	found = released;
	if (found)
		released = found->next;
	pthread_mutex_unlock(&lock);
	return found;
}

static bool own_open(void)
{
	struct free_memory *place = reused();
	struct pd_counted *counted = place ? place->counted : NULL;

	if (!place) {
		counted = pd_counted_make(bytes);
		place = counted ? calloc(1, sizeof(*place)) : NULL;
	}
	if (!place || pthread_setspecific(key, place))
		return false;
	pd_counted_empty(counted);
	self.own = counted;
	self.place = place;
	return true;
}

JNIEXPORT jlong JNICALL Java_java_lang_PerfdiffCounts_take(JNIEnv *environment, jclass type, jlong thread)
{
	(void)type;
	if (thread < 0)
		return (jlong)(uintptr_t)nobodys;
	if (!pd_thread_is_recorded(environment, PD_NOT_COUNTED)) {
		pd_counted_virtual();
		return (jlong)(uintptr_t)nobodys;
	}
	if (!self.own && !own_open())
		return (jlong)(uintptr_t)nobodys;
	self.own->thread = (uint64_t)thread;
	table[(uint64_t)thread % TABLE] = self.own;
	return (jlong)(uintptr_t)self.own;
}

JNIEXPORT jlong JNICALL Java_java_lang_PerfdiffCounts_table(JNIEnv *environment, jclass type)
{
	(void)environment, (void)type;
	return (jlong)(uintptr_t)table;
}

JNIEXPORT jint JNICALL Java_java_lang_PerfdiffCounts_functions(JNIEnv *environment, jclass type)
{
	(void)environment, (void)type;
	return (jint)functions;
}

/* Defines the class that counted methods call. `rest` are the words of a thread's memory behind its head. */
bool pd_memory_begin(JNIEnv *environment, size_t rest)
{
	jsize length = (jsize)(pd_counts_class_end - pd_counts_class);
	void *mapped;

	functions = rest / 2;
	bytes = sizeof(struct pd_counted) + rest * sizeof(uint64_t);
	mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED || pthread_key_create(&key, thread_ends))
		return false;
	nobodys = mapped;
	nobodys->thread = NOBODY;
	for (size_t i = 0; i < TABLE; i++)
		table[i] = nobodys;
	return (*environment)->DefineClass(environment, "java/lang/PerfdiffCounts", NULL, (const jbyte *)pd_counts_class, length) != NULL;
}
