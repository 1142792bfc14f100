/* What the virtual machine tells: that a class is loaded, that it collects garbage, that a thread waits for a monitor, that it ends. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "java_probe.h"
#ifdef PD_PER_CALL
#include "../counting/counts.h"
#endif

#define TOLD_MOST 20   /* classes that are told as altered */
#define TOLD_SHARE 100 /* pauses are told from this part of the process's time on */

static jvmtiEnv *tools;
static uint64_t began_ns, collecting_ns, collected_ns;

/* PERFDIFF_PROBE_CLASS is the path of the class file. */
extern const unsigned char pd_probe_class[], pd_probe_class_end[];
__asm__(".section .rodata\n"
	".globl pd_probe_class\n.hidden pd_probe_class\npd_probe_class:\n.incbin \"" PERFDIFF_PROBE_CLASS "\"\n"
	".globl pd_probe_class_end\n.hidden pd_probe_class_end\npd_probe_class_end:\n.previous\n");

static void JNICALL class_loads(jvmtiEnv *env, JNIEnv *environment, jclass redefined, jobject loader, const char *name, jobject domain,
				jint length, const unsigned char *bytes, jint *new_length, unsigned char **new_bytes)
{
	static atomic_uint told;
	const struct pd_woven *woven;
	uint64_t digest;

	(void)environment, (void)redefined, (void)loader, (void)domain;
	if (!name || !(woven = pd_sheet_named(name, NULL)))
		return;
	digest = pd_class_digest(bytes, (size_t)length);
	while (woven && (woven->length != (size_t)length || woven->digest != digest))
		woven = pd_sheet_named(name, woven);
	if (!woven) {
		if (atomic_fetch_add(&told, 1) < TOLD_MOST)
			pd_note("altered", name);
		return;
	}
	if ((*env)->Allocate(env, (jlong)woven->bytes_length, new_bytes))
		return;
	memcpy(*new_bytes, woven->bytes, woven->bytes_length);
	*new_length = (jint)woven->bytes_length;
}

static void (JNICALL *next_park)(JNIEnv *, jobject, jboolean, jlong);

/* In the place of `Unsafe.park`, by which all locks of java.util.concurrent wait. */
static void JNICALL park(JNIEnv *environment, jobject unsafe, jboolean is_absolute, jlong time)
{
	pd_wait_begin();
	next_park(environment, unsafe, is_absolute, time);
	pd_wait_end();
}

static bool is_park(jvmtiEnv *env, jmethodID method)
{
	char *name = NULL, *class = NULL;
	jclass owner;
	bool is = false;

	if ((*env)->GetMethodName(env, method, &name, NULL, NULL))
		return false;
	if (!strcmp(name, "park") && !(*env)->GetMethodDeclaringClass(env, method, &owner) && !(*env)->GetClassSignature(env, owner, &class, NULL))
		is = !strcmp(class, "Ljdk/internal/misc/Unsafe;");
	(*env)->Deallocate(env, (unsigned char *)name);
	(*env)->Deallocate(env, (unsigned char *)class);
	return is;
}

/* The JDK's own class names its natives before any event but these, and an early start, may be had. */
static void JNICALL native_is_bound(jvmtiEnv *env, JNIEnv *environment, jthread thread, jmethodID method, void *address, void **taken)
{
	(void)environment, (void)thread;
	if (next_park || !is_park(env, method))
		return;
	next_park = (void (JNICALL *)(JNIEnv *, jobject, jboolean, jlong))address;
	*taken = (void *)park;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void JNICALL collection_begins(jvmtiEnv *env)
{
	(void)env;
	collecting_ns = now_ns();
#ifdef PD_PER_CALL
	pd_collection_count();
#endif
	pd_pause_begin();
}

static void JNICALL collection_ends(jvmtiEnv *env)
{
	(void)env;
	pd_pause_end();
	collected_ns += now_ns() - collecting_ns;
}

static void JNICALL monitor_contended(jvmtiEnv *env, JNIEnv *environment, jthread thread, jobject monitor)
{
	(void)env, (void)environment, (void)thread, (void)monitor;
	pd_wait_begin();
}

static void JNICALL monitor_entered(jvmtiEnv *env, JNIEnv *environment, jthread thread, jobject monitor)
{
	(void)env, (void)environment, (void)thread, (void)monitor;
	pd_wait_end();
}

static void JNICALL monitor_waits(jvmtiEnv *env, JNIEnv *environment, jthread thread, jobject monitor, jlong timeout)
{
	(void)env, (void)environment, (void)thread, (void)monitor, (void)timeout;
	pd_wait_begin();
}

static void JNICALL monitor_waited(jvmtiEnv *env, JNIEnv *environment, jthread thread, jobject monitor, jboolean timed_out)
{
	(void)env, (void)environment, (void)thread, (void)monitor, (void)timed_out;
	pd_wait_end();
}

#ifdef PD_PER_CALL
static void JNICALL thread_ends(jvmtiEnv *env, JNIEnv *environment, jthread thread)
{
	(void)env, (void)environment, (void)thread;
	pd_calls_settle();
	pd_heap_lose();
}
#endif

static void JNICALL machine_ends(jvmtiEnv *env, JNIEnv *environment)
{
	(void)env, (void)environment;
#ifdef PD_PER_CALL
	pd_calls_settle();
#endif
	if (collected_ns * TOLD_SHARE > now_ns() - began_ns)
		pd_note("paused", "garbage collection made up more than 1 % of runs: its pauses are taken off the calls that they interrupted");
	pd_upkeep_tell(now_ns() - began_ns, collected_ns);
}

static bool event_enable(jvmtiEvent event)
{
	return (*tools)->SetEventNotificationMode(tools, JVMTI_ENABLE, event, NULL) == JVMTI_ERROR_NONE;
}

/* Takes what the way to a probe costs on this machine: four numbers of picoseconds (perfdiff/languages/java/calibrating.py). */
static void costs_take(void)
{
	const char *text = getenv("PERFDIFF_JAVA_COSTS");
	double costs[4] = {0};
	char *end;

	for (int i = 0; text && i < 4; i++, text = end)
		costs[i] = (double)strtoull(text, &end, 10) / 1e3;
	pd_costs_add(costs[0], costs[1], costs[2], costs[3]);
}

/* Defines the class that woven ones call, in the loader that all others find. Without it, no woven class may be loaded. */
static bool probe_define(JNIEnv *environment)
{
	jsize length = (jsize)(pd_probe_class_end - pd_probe_class);
	bool is_made = (*environment)->DefineClass(environment, "java/lang/PerfdiffProbe", NULL, (const jbyte *)pd_probe_class, length) &&
		       pd_threads_begin(environment);

#ifdef PD_PER_CALL
	is_made = is_made && pd_calls_begin(environment);
#endif
	if ((*environment)->ExceptionCheck(environment))
		(*environment)->ExceptionClear(environment);
	return is_made;
}

/* From here on classes of the program are loaded. Those of the JDK that come before would have to be read for us one by one. */
static void JNICALL machine_is_ready(jvmtiEnv *env, JNIEnv *environment, jthread thread)
{
	(void)env, (void)thread;
	costs_take();
	pd_virtual_begin(environment);
	if (!probe_define(environment) || !event_enable(JVMTI_EVENT_CLASS_FILE_LOAD_HOOK))
		pd_note("failed", "the probes could not be started");
}

static const jvmtiEvent monitor_events[] = {
	JVMTI_EVENT_MONITOR_CONTENDED_ENTER, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED, JVMTI_EVENT_MONITOR_WAIT, JVMTI_EVENT_MONITOR_WAITED,
};

static bool capability_add(jvmtiCapabilities wanted)
{
	return (*tools)->AddCapabilities(tools, &wanted) == JVMTI_ERROR_NONE;
}

bool pd_events_begin(JavaVM *machine)
{
	jvmtiEventCallbacks callbacks = {
		.VMInit = machine_is_ready,
		.VMDeath = machine_ends,
		.ClassFileLoadHook = class_loads,
		.GarbageCollectionStart = collection_begins,
		.GarbageCollectionFinish = collection_ends,
		.MonitorContendedEnter = monitor_contended,
		.MonitorContendedEntered = monitor_entered,
		.MonitorWait = monitor_waits,
		.MonitorWaited = monitor_waited,
		.NativeMethodBind = native_is_bound,
	};
	bool sees_monitors, sees_parks;

	began_ns = now_ns();
#ifdef PD_PER_CALL
	callbacks.ThreadEnd = thread_ends;
#endif
	if ((*machine)->GetEnv(machine, (void **)&tools, JVMTI_VERSION_11) != JNI_OK)
		return false;
	if (!capability_add((jvmtiCapabilities){.can_generate_all_class_hook_events = 1}))
		return false;
	sees_monitors = capability_add((jvmtiCapabilities){.can_generate_monitor_events = 1});
	sees_parks = capability_add((jvmtiCapabilities){.can_generate_native_method_bind_events = 1, .can_generate_early_vmstart = 1});
	if ((*tools)->SetEventCallbacks(tools, &callbacks, sizeof(callbacks)))
		return false;
	if (!event_enable(JVMTI_EVENT_VM_INIT) || !event_enable(JVMTI_EVENT_VM_DEATH))
		return false;
#ifdef PD_PER_CALL
	if (!event_enable(JVMTI_EVENT_THREAD_END))
		return false;
#endif
	pd_virtual_follow(tools);
	if (capability_add((jvmtiCapabilities){.can_generate_garbage_collection_events = 1})) {
		event_enable(JVMTI_EVENT_GARBAGE_COLLECTION_START);
		event_enable(JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
	}
	for (size_t i = 0; i < sizeof(monitor_events) / sizeof(monitor_events[0]); i++)
		sees_monitors = sees_monitors && event_enable(monitor_events[i]);
	if (sees_monitors && sees_parks && event_enable(JVMTI_EVENT_NATIVE_METHOD_BIND))
		pd_waits_tell();
	return true;
}
