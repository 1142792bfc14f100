/*
 * Loads that cannot fault: single instructions in a known range, from which our SIGSEGV and SIGBUS handler returns with
 * "not read". The target's own handlers are kept beside ours and get all other faults. Where the signals are blocked (a fault
 * would then kill the process) and in static links (the target's sigaction is not ours) the kernel is asked instead.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

struct peeked {
	uint64_t value;
	uint64_t read;
};

struct peeked pd_peek_1(uintptr_t address) __attribute__((visibility("hidden")));
struct peeked pd_peek_2(uintptr_t address) __attribute__((visibility("hidden")));
struct peeked pd_peek_4(uintptr_t address) __attribute__((visibility("hidden")));
struct peeked pd_peek_8(uintptr_t address) __attribute__((visibility("hidden")));
struct peeked pd_peek_ahead(uintptr_t address, uintptr_t end) __attribute__((visibility("hidden")));
extern const char pd_peek_begin[] __attribute__((visibility("hidden")));
extern const char pd_peek_end[] __attribute__((visibility("hidden")));
extern const char pd_peek_fault[] __attribute__((visibility("hidden")));

#define SYMBOL(name) ".hidden " name "\n.globl " name "\n" name ":\n"
#if defined(__x86_64__)
#define PEEK(name, load) ".type " name ", @function\n" SYMBOL(name) load "\n movl $1, %edx\n ret\n"
__asm__(".text\n"
	SYMBOL("pd_peek_begin")
	PEEK("pd_peek_1", "movzbl (%rdi), %eax")
	PEEK("pd_peek_2", "movzwl (%rdi), %eax")
	PEEK("pd_peek_4", "movl (%rdi), %eax")
	PEEK("pd_peek_8", "movq (%rdi), %rax")
	PEEK("pd_peek_ahead",
	     "pxor %xmm0, %xmm0\n"
	     "1: cmpq %rsi, %rdi\n jae 2f\n"
	     "movdqa (%rdi), %xmm1\n pcmpeqb %xmm0, %xmm1\n pmovmskb %xmm1, %eax\n testl %eax, %eax\n jnz 2f\n"
	     "addq $16, %rdi\n jmp 1b\n"
	     "2: movq %rdi, %rax")
	SYMBOL("pd_peek_end")
	SYMBOL("pd_peek_fault")
	"xorl %eax, %eax\n xorl %edx, %edx\n ret\n");
#else
#define PEEK(name, load) ".type " name ", %function\n" SYMBOL(name) load "\n mov x1, #1\n ret\n"
__asm__(".text\n.balign 4\n"
	SYMBOL("pd_peek_begin")
	PEEK("pd_peek_1", "ldrb w0, [x0]")
	PEEK("pd_peek_2", "ldrh w0, [x0]")
	PEEK("pd_peek_4", "ldr w0, [x0]")
	PEEK("pd_peek_8", "ldr x0, [x0]")
	PEEK("pd_peek_ahead",
	     "1: cmp x0, x1\n b.hs 2f\n"
	     "ldr q0, [x0]\n cmeq v0.16b, v0.16b, #0\n umaxv b0, v0.16b\n umov w2, v0.b[0]\n cbnz w2, 2f\n"
	     "add x0, x0, #16\n b 1b\n"
	     "2:")
	SYMBOL("pd_peek_end")
	SYMBOL("pd_peek_fault")
	"mov x0, #0\n mov x1, #0\n ret\n");
#endif

static bool peek_by_kernel(uintptr_t address, size_t size, uint64_t *value)
{
	struct iovec local = {value, size}, remote = {(void *)address, size};
	int error = errno;
	bool read;

	*value = 0;
	read = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
	errno = error;
	return read;
}

/* Reads 1, 2, 4 or 8 bytes, zero-extended. */
bool pd_peek(enum pd_guard guard, uintptr_t address, size_t size, uint64_t *value)
{
	struct peeked peeked;

	if (guard != PD_GUARD_HANDLER)
		return peek_by_kernel(address, size, value);
	switch (size) {
	case 1:
		peeked = pd_peek_1(address);
		break;
	case 2:
		peeked = pd_peek_2(address);
		break;
	case 4:
		peeked = pd_peek_4(address);
		break;
	default:
		peeked = pd_peek_8(address);
	}
	*value = peeked.value;
	return peeked.read;
}

/* Returns the first block of a text that has a zero byte, from `address` to `end`, both aligned to blocks; 0 where one cannot be read. */
uintptr_t pd_peek_blocks(enum pd_guard guard, uintptr_t address, uintptr_t end)
{
	struct peeked peeked;

	if (guard != PD_GUARD_HANDLER)
		return address;
	peeked = pd_peek_ahead(address, end);
	return peeked.read ? peeked.value : 0;
}

#ifdef PD_STATIC

enum pd_guard pd_guard_find(void)
{
	return PD_GUARD_SYSCALL;
}

void pd_guard_begin(void)
{
}

#else

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef void (*handler_function)(int);

static bool installed;
static struct sigaction target_segv, target_bus; /* what the target believes is installed */

static struct sigaction *target_of(int signal)
{
	if (!installed)
		return NULL;
	return signal == SIGSEGV ? &target_segv : signal == SIGBUS ? &target_bus : NULL;
}

static struct {
	sigaction_function *sigaction;
	handler_function (*signal)(int, handler_function);
	handler_function (*sysv_signal)(int, handler_function);
	handler_function (*sigset)(int, handler_function);
} next;

static PD_RESOLVE void find_all(void)
{
	next.signal = (handler_function(*)(int, handler_function))pd_next_function("signal");
	next.sysv_signal = (handler_function(*)(int, handler_function))pd_next_function("__sysv_signal");
	next.sigset = (handler_function(*)(int, handler_function))pd_next_function("sigset");
	next.sigaction = (sigaction_function *)pd_next_function("sigaction");
}

static int real_sigaction(int signal, const struct sigaction *action, struct sigaction *former)
{
	if (!next.sigaction)
		find_all();
	return next.sigaction ? next.sigaction(signal, action, former) : -1;
}

/* Gives a fault that is not ours to the target, as the kernel would have. */
static void chain(int signal, siginfo_t *info, void *context)
{
	struct sigaction *target = target_of(signal);
	struct sigaction action = *target;
	bool sent = info->si_code <= 0;
	sigset_t itself;

	if (action.sa_handler == SIG_IGN && sent)
		return;
	if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
		memset(&action, 0, sizeof(action));
		real_sigaction(signal, &action, NULL); /* on return, the instruction faults again and the default follows */
		if (sent)
			syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
		return;
	}
	if (action.sa_flags & SA_RESETHAND)
		target->sa_handler = SIG_DFL;
	pthread_sigmask(SIG_BLOCK, &action.sa_mask, NULL);
	if (action.sa_flags & SA_NODEFER) {
		sigemptyset(&itself);
		sigaddset(&itself, signal);
		pthread_sigmask(SIG_UNBLOCK, &itself, NULL);
	}
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(signal, info, context);
	else
		action.sa_handler(signal);
}

static void fault(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
#if defined(__x86_64__)
	greg_t *counter = &context->uc_mcontext.gregs[REG_RIP];
#else
	unsigned long long *counter = &context->uc_mcontext.pc;
#endif

	if ((uintptr_t)*counter >= (uintptr_t)pd_peek_begin && (uintptr_t)*counter < (uintptr_t)pd_peek_end)
		*counter = (__typeof__(*counter))(uintptr_t)pd_peek_fault;
	else
		chain(signal, info, data);
}

static void handler_install(int signal, int flags, struct sigaction *former)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
	real_sigaction(signal, &action, former);
}

static bool is_taken(int signal)
{
	struct sigaction action;

	return real_sigaction(signal, NULL, &action) || action.sa_flags & SA_SIGINFO || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/* Whoever has handlers before us, as a virtual machine that we are loaded into, works by faults: they stay the only ones. */
void pd_guard_begin(void)
{
	if (is_taken(SIGSEGV) || is_taken(SIGBUS))
		return;
	handler_install(SIGSEGV, 0, &target_segv);
	handler_install(SIGBUS, 0, &target_bus);
	installed = true;
}

enum pd_guard pd_guard_find(void)
{
	sigset_t blocked;

	if (!installed || pthread_sigmask(SIG_BLOCK, NULL, &blocked) || sigismember(&blocked, SIGSEGV) || sigismember(&blocked, SIGBUS))
		return PD_GUARD_SYSCALL;
	return PD_GUARD_HANDLER;
}

PD_API int sigaction(int signal, const struct sigaction *action, struct sigaction *former)
{
	struct sigaction *target = target_of(signal);
	struct sigaction previous;

	if (!target)
		return real_sigaction(signal, action, former);
	previous = *target;
	if (action) {
		*target = *action;
		handler_install(signal, action->sa_flags & (SA_RESTART | SA_NODEFER), NULL);
	}
	if (former)
		*former = previous;
	return 0;
}

static handler_function install_simple(handler_function (**real)(int, handler_function), int signal, handler_function handler, int flags)
{
	struct sigaction action, former;

	if (!target_of(signal)) {
		if (!*real)
			find_all();
		return *real ? (*real)(signal, handler) : SIG_ERR;
	}
	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(signal, &action, &former);
	return former.sa_handler;
}

PD_API handler_function signal(int signal, handler_function handler)
{
	return install_simple(&next.signal, signal, handler, SA_RESTART);
}

/* What `signal` is in strict ISO and X/Open programs. */
PD_API handler_function __sysv_signal(int signal, handler_function handler)
{
	return install_simple(&next.sysv_signal, signal, handler, SA_RESETHAND | SA_NODEFER);
}

/* System V's, which also blocks the signal (SIG_HOLD), or lets it through. */
PD_API handler_function sigset(int signal, handler_function handler)
{
	struct sigaction *target = target_of(signal);
	bool holds = handler == SIG_HOLD;
	sigset_t itself, blocked;
	handler_function former;

	if (!target)
		return install_simple(&next.sigset, signal, handler, 0);
	former = holds ? target->sa_handler : install_simple(&next.sigset, signal, handler, 0);
	sigemptyset(&itself);
	sigaddset(&itself, signal);
	pthread_sigmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &itself, &blocked);
	return sigismember(&blocked, signal) ? SIG_HOLD : former;
}

#endif
