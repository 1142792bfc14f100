/*
 * The agent: loaded at a JVM's start by JAVA_TOOL_OPTIONS, does something where `PERFDIFF_JAVA` names a sheet (perfdiff/languages/java/start.py).
 * It prints nothing: what it cannot do, it tells in a note, and the program goes on.
 */
#include <stdlib.h>

#include "java_probe.h"
#ifdef PD_PER_CALL
#include "../counting/counts.h"
#endif

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *machine, char *options, void *reserved)
{
	const char *sheet = getenv("PERFDIFF_JAVA");

	(void)options, (void)reserved;
	if (!sheet || !pd_probes)
		return JNI_OK;
#ifdef PD_PER_CALL
	if (!getenv("PERFDIFF_OUTSIDE") || !pd_calls_open(getenv("PERFDIFF_OUTSIDE"))) {
		pd_note("failed", "the names of functions that are counted cannot be read");
		return JNI_OK;
	}
#endif
	if (!pd_sheet_open(sheet))
		pd_note("failed", "the sheet of woven classes cannot be read");
	else if (!pd_events_begin(machine))
		pd_note("failed", "the virtual machine does not tell which classes it loads");
	return JNI_OK;
}
