/*
 * Counted accesses and blocks in place of calls, for gcc on x86-64: text for the assembler, included ahead of every translation unit.
 *
 * It makes of `call` a macro that knows the functions of access.c and blocks.c, and does there what they do for recent lines.
 * Registers that a call may change are free. All other calls, and those of objects compiled without it, stay what they are. Divisions
 * become macros as well, which count them: no other place sees each of them, as compilers move and guard them after their instrumentation.
 */
#ifndef PERFDIFF_INLINE_H
#define PERFDIFF_INLINE_H
#pragma GCC system_header
#if defined(__x86_64__) && defined(__ELF__)

#define PD_KNOWN(name, becomes) \
	"	.ifc \\target," name "\n" becomes "\n	.exitm\n	.endif\n" \
	"	.ifc \\target," name "@PLT\n" becomes "\n	.exitm\n	.endif\n" \
	"	.ifc \\target,*" name "@GOTPCREL(%rip)\n" becomes "\n	.exitm\n	.endif\n"
#define PD_ACCESS(size) \
	PD_KNOWN("__tsan_read" size, "	pd_read " size ", \\@") \
	PD_KNOWN("__tsan_write" size, "	pd_write " size ", \\@")

__asm__(
	"	.ifndef .Lpd_inline\n" /* link-time optimisation puts several units into one */
	"	.set .Lpd_inline, 1\n"
	/* Places in struct pd_core, which pmu.h asserts. */
	"	.set .Lpd_readable, 88\n"
	"	.set .Lpd_writable, 2136\n"
	"	.set .Lpd_written, 4184\n"
	"	.set .Lpd_lanes, 6232\n"

	/* The number of the site in this file is its lane. */
	"	.macro pd_block site\n"
	"	movq pd_core@gottpoff(%rip), %rax\n"
	"	addq $1, %fs:.Lpd_lanes + 32 * (\\site & 7)(%rax)\n"
	"	.endm\n"

	/* rsi: address of the line, unless the access is not aligned; rax: its index among the recent lines. */
	"	.macro pd_look size\n"
	"	movq %rdi, %rsi\n"
	"	andq $(\\size - 1) | ~63, %rsi\n"
	"	imull $0x278dde7, %esi, %eax\n"
	"	movq pd_core@gottpoff(%rip), %rdx\n"
	"	shrl $24, %eax\n"
	"	.endm\n"

	"	.macro pd_read size, site\n"
	"	pd_look \\size\n"
	"	addq $1, %fs:.Lpd_lanes + 8 + 32 * (\\site & 7)(%rdx)\n"
	"	cmpq %rsi, %fs:.Lpd_readable(%rdx, %rax, 8)\n"
	"	je .Lpd_done\\site\n"
	"	callq pd_read\\size@PLT\n"
	".Lpd_done\\site:\n"
	"	.endm\n"

	"	.macro pd_write size, site\n"
	"	pd_look \\size\n"
	"	addq $1, %fs:.Lpd_lanes + 16 + 32 * (\\site & 7)(%rdx)\n"
	"	cmpq %rsi, %fs:.Lpd_writable(%rdx, %rax, 8)\n"
	"	jne .Lpd_other\\site\n"
	"	movl %edi, %ecx\n"
	"	movl $(1 << \\size) - 1, %esi\n"
	"	shlq %cl, %rsi\n"
	"	orq %rsi, %fs:.Lpd_written(%rdx, %rax, 8)\n"
	"	jmp .Lpd_done\\site\n"
	".Lpd_other\\site:\n"
	"	callq pd_write\\size@PLT\n"
	".Lpd_done\\site:\n"
	"	.endm\n"

	/*
	 * Divisions stand where the compiler wants them, with no register free: two are kept below what a leaf function has there. Those of
	 * integers leave no flags; across the others a comparison may live, so they are counted without touching flags.
	 */
	"	.macro pd_divided\n"
	"	leaq -128(%rsp), %rsp\n"
	"	pushq %rax\n"
	"	movq pd_core@gottpoff(%rip), %rax\n"
	"	addq $1, %fs:.Lpd_lanes + 24 + 32 * (\\@ & 7)(%rax)\n"
	"	popq %rax\n"
	"	leaq 128(%rsp), %rsp\n"
	"	.endm\n"

	"	.macro pd_divided_keeping_flags\n"
	"	leaq -128(%rsp), %rsp\n"
	"	pushq %rax\n"
	"	pushq %rcx\n"
	"	movq pd_core@gottpoff(%rip), %rax\n"
	"	movq %fs:.Lpd_lanes + 24 + 32 * (\\@ & 7)(%rax), %rcx\n"
	"	leaq 1(%rcx), %rcx\n"
	"	movq %rcx, %fs:.Lpd_lanes + 24 + 32 * (\\@ & 7)(%rax)\n"
	"	popq %rcx\n"
	"	popq %rax\n"
	"	leaq 128(%rsp), %rsp\n"
	"	.endm\n"

	/* A division that is counted is no macro while it is assembled. */
	"	.macro pd_division name, counted\n"
	"	.macro \\name operands:vararg\n"
	"	\\counted\n"
	"	.purgem \\name\n"
	"	\\name \\operands\n"
	"	pd_division \\name, \\counted\n"
	"	.endm\n"
	"	.endm\n"

	"	.irp name, div, divb, divw, divl, divq, idiv, idivb, idivw, idivl, idivq\n"
	"	pd_division \\name, pd_divided\n"
	"	.endr\n"
	"	.irp name, divss, divsd, divps, divpd, vdivss, vdivsd, vdivps, vdivpd\n"
	"	pd_division \\name, pd_divided_keeping_flags\n"
	"	.endr\n"
	"	.irp name, sqrtss, sqrtsd, sqrtps, sqrtpd, vsqrtss, vsqrtsd, vsqrtps, vsqrtpd, fsqrt\n"
	"	pd_division \\name, pd_divided_keeping_flags\n"
	"	.endr\n"
	"	.irp name, fdiv, fdivs, fdivl, fdivp, fdivr, fdivrs, fdivrl, fdivrp, fidivs, fidivl, fidivrs, fidivrl\n"
	"	pd_division \\name, pd_divided_keeping_flags\n"
	"	.endr\n"

	"	.macro call target:vararg\n"
	PD_KNOWN("__sanitizer_cov_trace_pc", "	pd_block \\@")
	PD_ACCESS("8")
	PD_ACCESS("4")
	PD_ACCESS("1")
	PD_ACCESS("16")
	PD_ACCESS("2")
	"	callq \\target\n" /* the same instruction by a name that is no macro's */
	"	.endm\n"
	"	.endif\n");

#undef PD_ACCESS
#undef PD_KNOWN

#endif
#endif
