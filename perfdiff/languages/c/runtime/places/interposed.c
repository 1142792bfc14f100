/*
 * Functions of the C library that end a program without a word to it, or change what a signal does. In a static link nothing can stand
 * before the C library but where the linker is asked to (--wrap).
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

extern char **environ;

static __attribute__((noreturn)) void exit_now(int status)
{
	pd_places_write();
	for (;;)
		syscall(SYS_exit_group, status);
}

#ifdef PD_STATIC

int pd_places_sigaction(int signal, const struct sigaction *action, struct sigaction *former)
{
	return sigaction(signal, action, former);
}

__attribute__((noreturn)) void __wrap__exit(int status)
{
	exit_now(status);
}

__attribute__((noreturn)) void __wrap__Exit(int status)
{
	exit_now(status);
}

#else

typedef void (*handler_function)(int);
typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef int execve_function(const char *, char *const[], char *const[]);
typedef int fexecve_function(int, char *const[], char *const[]);

PD_API __attribute__((noreturn)) void _exit(int status)
{
	exit_now(status);
}

PD_API __attribute__((noreturn)) void _Exit(int status)
{
	exit_now(status);
}

int pd_places_sigaction(int signal, const struct sigaction *action, struct sigaction *former)
{
	static sigaction_function *next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sigaction");
	return next ? next(signal, action, former) : -1;
}

/* The program sees the default where ours stands in for it, and gets ours where it asks for the default. */
PD_API int sigaction(int signal, const struct sigaction *action, struct sigaction *former)
{
	int status = pd_places_sigaction(signal, action, former);

	if (status)
		return status;
	if (former && pd_places_catches(former)) {
		memset(former, 0, sizeof(*former));
		former->sa_handler = SIG_DFL;
	}
	if (action && action->sa_handler == SIG_DFL && pd_places_is_deadly(signal))
		pd_places_catch(signal);
	return 0;
}

static handler_function install(int number, handler_function handler, int flags)
{
	struct sigaction action, former;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = flags;
	return sigaction(number, &action, &former) ? SIG_ERR : former.sa_handler;
}

PD_API handler_function signal(int number, handler_function handler)
{
	return install(number, handler, SA_RESTART);
}

/* What `signal` is in strict ISO and X/Open programs. */
PD_API handler_function __sysv_signal(int number, handler_function handler)
{
	return install(number, handler, SA_RESETHAND | SA_NODEFER);
}

static int failed(int status)
{
	int error = errno;

	pd_places_mark(); /* the program goes on */
	errno = error;
	return status;
}

PD_API int execve(const char *path, char *const arguments[], char *const environment[])
{
	static execve_function *next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "execve");
	pd_places_write();
	return failed(next ? next(path, arguments, environment) : -1);
}

PD_API int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	static execve_function *next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "execvpe");
	pd_places_write();
	return failed(next ? next(file, arguments, environment) : -1);
}

PD_API int fexecve(int file, char *const arguments[], char *const environment[])
{
	static fexecve_function *next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fexecve");
	pd_places_write();
	return failed(next ? next(file, arguments, environment) : -1);
}

PD_API int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

PD_API int execvp(const char *file, char *const arguments[])
{
	return execvpe(file, arguments, environ);
}

static size_t counted(const char *first, va_list more)
{
	size_t arguments = 0;

	for (const char *argument = first; argument; argument = va_arg(more, const char *))
		arguments++;
	return arguments;
}

static void gather(const char **arguments, const char *first, va_list more)
{
	*arguments = first;
	while (*arguments)
		*++arguments = va_arg(more, const char *);
}

PD_API int execl(const char *path, const char *first, ...)
{
	va_list more;

	va_start(more, first);
	const char *arguments[counted(first, more) + 1];
	va_end(more);
	va_start(more, first);
	gather(arguments, first, more);
	va_end(more);
	return execve(path, (char *const *)arguments, environ);
}

PD_API int execlp(const char *file, const char *first, ...)
{
	va_list more;

	va_start(more, first);
	const char *arguments[counted(first, more) + 1];
	va_end(more);
	va_start(more, first);
	gather(arguments, first, more);
	va_end(more);
	return execvpe(file, (char *const *)arguments, environ);
}

PD_API int execle(const char *path, const char *first, ...)
{
	char *const *environment;
	va_list more;

	va_start(more, first);
	const char *arguments[counted(first, more) + 1];
	va_end(more);
	va_start(more, first);
	gather(arguments, first, more);
	environment = va_arg(more, char *const *); /* behind the null that ends the others */
	va_end(more);
	return execve(path, (char *const *)arguments, environment);
}

#endif
