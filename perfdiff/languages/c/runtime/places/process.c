/*
 * Has the compilers' counters written where their own runtimes do not: at _exit, quick_exit and exec, and before a signal ends the process.
 * Nothing is counted here. While a process has counts that are not written, a file of its number stands in the run's folder: what is killed
 * leaves it there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

#define MOST_WRITING_S 5 /* a signal may come while the program holds a lock that writing needs */
#define STACK_BYTES 65536

static const int deadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,    SIGFPE,  SIGUSR1, SIGSEGV,
			     SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGSYS};

static struct pd_places *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t ending; /* the signal that ends the process */
static char folder[PATH_MAX];
static char stack[STACK_BYTES];

static bool mark_path(char *path, size_t size)
{
	return folder[0] && snprintf(path, size, "%s/%ld.running", folder, (long)getpid()) < (int)size;
}

void pd_places_mark(void)
{
	char path[PATH_MAX];
	int file;

	if (!mark_path(path, sizeof(path)))
		return;
	file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (file >= 0)
		close(file);
}

static void unmark(void)
{
	char path[PATH_MAX];

	if (mark_path(path, sizeof(path)))
		unlink(path);
}

/*
 * Cleared at once: the child of a vfork does it in its parent's memory, and the parent goes on counting. No lock, as a signal may have
 * come while it was held; libraries that are closed meanwhile are taken off before they are gone.
 */
void pd_places_write(void)
{
	int error = errno;

	for (struct pd_places *places = all; places; places = places->next) {
		places->write();
		places->clear();
	}
	unmark();
	errno = error;
}

void pd_places_add(struct pd_places *places)
{
	pthread_mutex_lock(&all_lock);
	places->next = all;
	all = places;
	pthread_mutex_unlock(&all_lock);
}

void pd_places_remove(struct pd_places *places)
{
	struct pd_places **link = &all;

	pthread_mutex_lock(&all_lock);
	while (*link && *link != places)
		link = &(*link)->next;
	if (*link)
		*link = places->next;
	pthread_mutex_unlock(&all_lock);
}

/* The child's counters are a copy of its parent's, who writes them. */
static void begin_child(void)
{
	pthread_mutex_init(&all_lock, NULL);
	for (struct pd_places *places = all; places; places = places->next)
		places->clear();
	pd_places_mark();
}

bool pd_places_is_deadly(int signal)
{
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		if (deadly[i] == signal)
			return true;
	return false;
}

static void set_default(int signal)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	pd_places_sigaction(signal, &action, NULL);
}

static void end_by(int signal)
{
	sigset_t itself;

	set_default(signal);
	sigemptyset(&itself);
	sigaddset(&itself, signal);
	pthread_sigmask(SIG_UNBLOCK, &itself, NULL);
	syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

static void give_up(int signal)
{
	(void)signal;
	end_by(ending);
}

static void die(int signal)
{
	struct sigaction late;
	sigset_t alarm_only;

	if (ending)
		return end_by(signal); /* it came while counts were written */
	ending = signal;
	memset(&late, 0, sizeof(late));
	late.sa_handler = give_up;
	pd_places_sigaction(SIGALRM, &late, NULL);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	alarm(MOST_WRITING_S);
	pd_places_write();
	end_by(signal);
}

/* Stands in for the default of signals that end a process. */
void pd_places_catch(int signal)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = die;
	action.sa_flags = SA_ONSTACK; /* it may be the stack that is full */
	pd_places_sigaction(signal, &action, NULL);
}

bool pd_places_catches(const struct sigaction *action)
{
	return action->sa_handler == die;
}

__attribute__((constructor(101))) static void begin(void)
{
	const char *given = secure_getenv("PERFDIFF_PLACES");
	const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action;
	stack_t former;

	if (!given || strlen(given) >= sizeof(folder))
		return;
	strcpy(folder, given);
	pd_places_mark();
	pthread_atfork(NULL, NULL, begin_child);
	at_quick_exit(pd_places_write);
	if (!sigaltstack(NULL, &former) && former.ss_flags & SS_DISABLE)
		sigaltstack(&own, NULL);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		if (!pd_places_sigaction(deadly[i], NULL, &action) && action.sa_handler == SIG_DFL)
			pd_places_catch(deadly[i]);
}

/* The last that is done here: what programs and libraries counted is written by then, or is about to be. */
__attribute__((destructor(101))) static void end(void)
{
	unmark();
}
