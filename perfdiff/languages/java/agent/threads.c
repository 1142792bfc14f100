/* Which threads are virtual: they move from one carrier to another while their calls are open, and who does not follow them leaves them out. */
#include "java_probe.h"

static jclass virtual_thread, thread_class; /* NULL where the virtual machine has none */
static jmethodID current_thread;
static __thread bool is_carrier __attribute__((tls_model("initial-exec")));

bool pd_threads_begin(JNIEnv *environment)
{
	jclass found = (*environment)->FindClass(environment, "java/lang/BaseVirtualThread");

	if (!found) {
		(*environment)->ExceptionClear(environment); /* before Java 19 */
		return true;
	}
	virtual_thread = (*environment)->NewGlobalRef(environment, found);
	found = (*environment)->FindClass(environment, "java/lang/Thread");
	thread_class = found ? (*environment)->NewGlobalRef(environment, found) : NULL;
	if (thread_class)
		current_thread = (*environment)->GetStaticMethodID(environment, thread_class, "currentThread", "()Ljava/lang/Thread;");
	return virtual_thread && current_thread;
}

/* Asked at the first call in a thread of the system; one that carries virtual threads does nothing else. `left_out` says so, once. */
bool pd_thread_is_recorded(JNIEnv *environment, const char *left_out)
{
	static bool is_told;
	jobject thread;

	if (is_carrier)
		return false;
	if (!virtual_thread)
		return true;
	thread = (*environment)->CallStaticObjectMethod(environment, thread_class, current_thread);
	if ((*environment)->ExceptionCheck(environment)) {
		(*environment)->ExceptionClear(environment);
		return false;
	}
	is_carrier = thread && (*environment)->IsInstanceOf(environment, thread, virtual_thread);
	(*environment)->DeleteLocalRef(environment, thread);
	if (is_carrier && !is_told) {
		is_told = true;
		pd_note("virtual", left_out);
	}
	return !is_carrier;
}
