/*
 * Virtual threads, from Java 21 on: they are carried by threads of the system, one after the other, and leave theirs where they wait. The calls
 * that they have open then go with them.
 */
#include <stdatomic.h>
#include <string.h>

#include "java_probe.h"

bool pd_virtual_are_followed;

#ifndef PD_PER_CALL

#define MOST 512 /* that wait in calls at once: each has a stack of its own, and 64 KiB of the recording or more */

/* `can_support_virtual_threads`: bit 44 of the capabilities, for which the headers of older JDKs have room and no name. */
union capabilities {
	jvmtiCapabilities all;
	uint32_t words[sizeof(jvmtiCapabilities) / sizeof(uint32_t)];
};

static jfieldID blocker; /* what a parked thread waits for: set by locks, not by sleeping and reading */
static atomic_uint waiting;
static atomic_flag are_told = ATOMIC_FLAG_INIT;

static void JNICALL unmounts(jvmtiEnv *tools, JNIEnv *environment, jthread thread)
{
	jobject lock = blocker ? (*environment)->GetObjectField(environment, thread, blocker) : NULL;
	void *calls;

	pd_reading_drop();
	if (atomic_load(&waiting) >= MOST && pd_is_open()) {
		pd_drop_calls();
		if (!atomic_flag_test_and_set(&are_told))
			pd_note("virtual", "so many virtual threads waited in calls at once that some of these calls are not recorded");
	}
	calls = pd_detach(lock != NULL);
	if (lock)
		(*environment)->DeleteLocalRef(environment, lock);
	if (!calls)
		return;
	if ((*tools)->SetThreadLocalStorage(tools, NULL, calls)) {
		pd_attach(calls);
		pd_drop_calls();
		return;
	}
	atomic_fetch_add(&waiting, 1);
}

static void JNICALL mounts(jvmtiEnv *tools, JNIEnv *environment, jthread thread)
{
	void *calls = NULL;

	(void)environment, (void)thread;
	if ((*tools)->GetThreadLocalStorage(tools, NULL, &calls) || !calls)
		return;
	(*tools)->SetThreadLocalStorage(tools, NULL, NULL);
	atomic_fetch_sub(&waiting, 1);
	pd_attach(calls);
}

static bool is_told(jvmtiEnv *tools, const jvmtiExtensionEventInfo *event)
{
	jvmtiExtensionEvent callback = NULL;

	if (!strcmp(event->id, "com.sun.hotspot.events.VirtualThreadMount"))
		callback = (jvmtiExtensionEvent)mounts;
	else if (!strcmp(event->id, "com.sun.hotspot.events.VirtualThreadUnmount"))
		callback = (jvmtiExtensionEvent)unmounts;
	return callback && !(*tools)->SetExtensionEventCallback(tools, event->extension_event_index, callback) &&
	       !(*tools)->SetEventNotificationMode(tools, JVMTI_ENABLE, (jvmtiEvent)event->extension_event_index, NULL);
}

static void event_free(jvmtiEnv *tools, const jvmtiExtensionEventInfo *event)
{
	for (jint i = 0; i < event->param_count; i++)
		(*tools)->Deallocate(tools, (unsigned char *)event->params[i].name);
	(*tools)->Deallocate(tools, (unsigned char *)event->params);
	(*tools)->Deallocate(tools, (unsigned char *)event->id);
	(*tools)->Deallocate(tools, (unsigned char *)event->short_description);
}

/* Where one event is told and the other is not, no calls are carried: then they are left out, as in Java 19 and 20. */
void pd_virtual_follow(jvmtiEnv *tools)
{
	union capabilities wanted = {.words = {[44 / 32] = 1u << 44 % 32}};
	jvmtiExtensionEventInfo *events;
	jint count, told = 0;

	if ((*tools)->AddCapabilities(tools, &wanted.all) || (*tools)->GetExtensionEvents(tools, &count, &events))
		return;
	for (jint i = 0; i < count; i++) {
		told += is_told(tools, &events[i]);
		event_free(tools, &events[i]);
	}
	(*tools)->Deallocate(tools, (unsigned char *)events);
	pd_virtual_are_followed = told == 2;
}

void pd_virtual_begin(JNIEnv *environment)
{
	jclass thread = (*environment)->FindClass(environment, "java/lang/Thread");

	blocker = thread ? (*environment)->GetFieldID(environment, thread, "parkBlocker", "Ljava/lang/Object;") : NULL;
	if ((*environment)->ExceptionCheck(environment))
		(*environment)->ExceptionClear(environment);
}

#else

void pd_virtual_follow(jvmtiEnv *tools)
{
	(void)tools;
}

void pd_virtual_begin(JNIEnv *environment)
{
	(void)environment;
}

#endif
