/*
 * The agent that counts lines: loaded at a JVM's start by JAVA_TOOL_OPTIONS, puts the classes of a sheet in which lines are counted in the place
 * of a project's own, as ../agent does with probes. It needs no runtime library.
 */
#include <stdlib.h>
#include <string.h>

#include "lines.h"

static jvmtiEnv *tools;

/* Nothing of the plan is read: there are no probes, and all that the sheet has is to be counted. */
int pd_is_off(unsigned int probe)
{
	(void)probe;
	return 0;
}

static void JNICALL class_loads(jvmtiEnv *env, JNIEnv *environment, jclass redefined, jobject loader, const char *name, jobject domain,
				jint length, const unsigned char *bytes, jint *new_length, unsigned char **new_bytes)
{
	const struct pd_woven *woven;
	uint64_t digest;

	(void)environment, (void)redefined, (void)loader, (void)domain;
	if (!name || !(woven = pd_sheet_named(name, NULL)))
		return;
	digest = pd_class_digest(bytes, (size_t)length);
	while (woven && (woven->length != (size_t)length || woven->digest != digest))
		woven = pd_sheet_named(name, woven);
	if (!woven)
		pd_counts_flag(PD_DISTURBED); /* it is not as the build made it */
	if (!woven || (*env)->Allocate(env, (jlong)woven->bytes_length, new_bytes))
		return;
	memcpy(*new_bytes, woven->bytes, woven->bytes_length);
	*new_length = (jint)woven->bytes_length;
}

static bool counts_begin(JNIEnv *environment)
{
	bool is_made = pd_threads_begin(environment) && pd_memory_begin(environment, pd_counts_places());

	if ((*environment)->ExceptionCheck(environment))
		(*environment)->ExceptionClear(environment);
	return is_made;
}

static void JNICALL machine_is_ready(jvmtiEnv *env, JNIEnv *environment, jthread thread)
{
	(void)thread;
	if (!counts_begin(environment) || (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, NULL))
		pd_counts_flag(PD_DISTURBED);
}

static bool events_begin(JavaVM *machine)
{
	jvmtiEventCallbacks callbacks = {.VMInit = machine_is_ready, .ClassFileLoadHook = class_loads};
	jvmtiCapabilities wanted = {.can_generate_all_class_hook_events = 1};

	if ((*machine)->GetEnv(machine, (void **)&tools, JVMTI_VERSION_11) != JNI_OK)
		return false;
	if ((*tools)->AddCapabilities(tools, &wanted) || (*tools)->SetEventCallbacks(tools, &callbacks, sizeof(callbacks)))
		return false;
	return !(*tools)->SetEventNotificationMode(tools, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *machine, char *options, void *reserved)
{
	const char *sheet = getenv("PERFDIFF_JAVA"), *folder = getenv("PERFDIFF_PLACES"), *places = getenv("PERFDIFF_JAVA_LINES");

	(void)options, (void)reserved;
	if (!sheet || !folder || !places)
		return JNI_OK;
	if (!pd_counts_open(folder, strtoull(places, NULL, 10)) || !pd_sheet_open(sheet) || !events_begin(machine))
		pd_counts_flag(PD_DISTURBED);
	return JNI_OK;
}
