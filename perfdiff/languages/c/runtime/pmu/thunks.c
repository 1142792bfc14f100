/*
 * Thunks that calls of functions outside go through: each counts the call, as one over an edge of the recording from the probed call that
 * is open, and goes on to the function with all registers as they were.
 */
#include "thunks.h"

#if !defined(PD_STATIC) && defined(__x86_64__)

#include <cpuid.h>
#include <sys/mman.h>

#define PD_OUTSIDE 208 /* of the field in struct pd_thread */
#define AS_TEXT(value) #value
#define TEXT(value) AS_TEXT(value)

__attribute__((used)) struct pd_function pd_functions[PD_THUNKS];
__attribute__((visibility("hidden"), used)) bool pd_has_wide_registers; /* beyond 16 bytes */

void pd_thunks_begin(void)
{
	unsigned int highest, ignored, flags;

	pd_has_wide_registers = __get_cpuid(1, &highest, &ignored, &flags, &ignored) && flags & bit_OSXSAVE;
}

/* The first call of a function from a probe in a thread. */
__attribute__((visibility("hidden"), used)) void pd_thunk_first(struct pd_thread *thread, uint32_t caller, uint32_t callee)
{
	struct pd_slow slow;

	pd_slow_begin(&slow);
	pd_functions_publish();
	if (!thread->outside) {
		thread->outside = pd_memory(PD_THUNKS * sizeof(*thread->outside));
		/* In a child of which nobody tells us these are its parent's, and so is the call that is open. */
		madvise(thread->outside, PD_THUNKS * sizeof(*thread->outside), MADV_WIPEONFORK);
	}
	pd_slow_end(&slow);
	pd_edge_find(thread, caller, callee)->calls++;
}

void pd_thunk_first_saving(struct pd_thread *thread, uint32_t caller, uint32_t callee) __attribute__((visibility("hidden")));

/* A call from another probe than the last one. Arguments of that call lie in vector registers: nothing here may touch them. */
__attribute__((visibility("hidden"), used)) PD_GENERAL void pd_thunk_called(uint32_t number)
{
	struct pd_thread *thread = pd_self.thread;
	uint32_t caller, callee = PD_LIBRARY | number;
	struct pd_edge *edge;

	if (pd_unlikely(!thread || pd_is_untold_child()))
		return;
	caller = thread->top->local->probe;
	edge = pd_edge_known(thread, caller, callee);
	if (pd_unlikely(!edge || !thread->outside)) {
		pd_thunk_first_saving(thread, caller, callee);
		return;
	}
	edge->calls++;
	thread->outside[number] = edge;
}

/* What the thunks find their way by. */
_Static_assert(offsetof(struct pd_local_state, thread) == 0 && offsetof(struct pd_thread, top) == 0, "thread and top");
_Static_assert(offsetof(struct pd_thread, outside) == PD_OUTSIDE && offsetof(struct pd_entry, local) == 24, "outside and local");
_Static_assert(offsetof(struct pd_local, probe) == 16, "probe");
_Static_assert(offsetof(struct pd_edge, caller) == 0 && offsetof(struct pd_edge, calls) == 8, "caller and calls");
_Static_assert(sizeof(struct pd_function) == 16 && offsetof(struct pd_function, target) == 0, "target");

/*
 * Each thunk counts and jumps by itself, so that processors foresee where it leads. r10 and r11 are free, as linkers' own thunks use them.
 * Where the caller is the last one, its edge is at hand; else all that a call may hand over is kept, and r10 leads back. Vector registers
 * are kept whole where C code may change them: XSAVE's area has room for those of AVX-512 (2,688 bytes), 0xe6 are its parts.
 */
__asm__(
	"	.text\n"
	"	.globl pd_thunks\n"
	"	.hidden pd_thunks\n"
	"	.type pd_thunks, @function\n"
	"	.balign " TEXT(PD_THUNK_BYTES) "\n"
	"pd_thunks:\n"
	"	.set .Lpd_number, 0\n"
	"	.rept " TEXT(PD_THUNKS) "\n"
	"	.balign " TEXT(PD_THUNK_BYTES) "\n"
	"	endbr64\n"
	"	pushq %rax\n"
	"	movq pd_self@gottpoff(%rip), %r10\n"
	"	movq %fs:(%r10), %r10\n"
	"	testq %r10, %r10\n"
	"	jz 1f\n"
	"	movq " TEXT(PD_OUTSIDE) "(%r10), %rax\n"
	"	testq %rax, %rax\n"
	"	jz 2f\n"
	"	movq 8 * .Lpd_number(%rax), %rax\n"
	"	testq %rax, %rax\n"
	"	jz 2f\n"
	"	movq (%r10), %r10\n"
	"	movq 24(%r10), %r10\n"
	"	movl 16(%r10), %r10d\n"
	"	cmpl %r10d, (%rax)\n"
	"	jne 2f\n"
	"	incq 8(%rax)\n"
	"1:	popq %rax\n"
	"	jmp *pd_functions + 16 * .Lpd_number(%rip)\n"
	"2:	movl $.Lpd_number, %r11d\n"
	"	leaq 1b(%rip), %r10\n"
	"	jmp .Lpd_other_caller\n"
	"	.set .Lpd_number, .Lpd_number + 1\n"
	"	.endr\n"
	"	.size pd_thunks, . - pd_thunks\n"

	"	.p2align 4\n"
	".Lpd_other_caller:\n" /* rax and the return address are on the stack */
	"	pushq %rcx\n"
	"	pushq %rdx\n"
	"	pushq %rsi\n"
	"	pushq %rdi\n"
	"	pushq %r8\n"
	"	pushq %r9\n"
	"	pushq %r10\n"
	"	subq $8, %rsp\n"
	"	movl %r11d, %edi\n"
	"	call pd_thunk_called\n"
	"	addq $8, %rsp\n"
	"	popq %r10\n"
	"	popq %r9\n"
	"	popq %r8\n"
	"	popq %rdi\n"
	"	popq %rsi\n"
	"	popq %rdx\n"
	"	popq %rcx\n"
	"	jmp *%r10\n"

	"	.hidden pd_thunk_first_saving\n"
	"	.type pd_thunk_first_saving, @function\n"
	"pd_thunk_first_saving:\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	subq $2688, %rsp\n"
	"	andq $-64, %rsp\n"
	"	cmpb $0, pd_has_wide_registers(%rip)\n"
	"	je .Lpd_narrow\n"
	"	.set .Lpd_word, 512\n" /* the area's header is to be 0 */
	"	.rept 8\n"
	"	movq $0, .Lpd_word(%rsp)\n"
	"	.set .Lpd_word, .Lpd_word + 8\n"
	"	.endr\n"
	"	movl %edx, %ecx\n"
	"	movl $0xe6, %eax\n"
	"	xorl %edx, %edx\n"
	"	xsave64 (%rsp)\n"
	"	movl %ecx, %edx\n"
	"	call pd_thunk_first\n"
	"	movl $0xe6, %eax\n"
	"	xorl %edx, %edx\n"
	"	xrstor64 (%rsp)\n"
	"	leave\n"
	"	ret\n"
	".Lpd_narrow:\n"
	"	fxsave64 (%rsp)\n"
	"	call pd_thunk_first\n"
	"	fxrstor64 (%rsp)\n"
	"	leave\n"
	"	ret\n");

#endif
