/* A body that is included twice, under macros that rename what it defines and the types it uses. */
#include <stdio.h>

#define NAME(x) narrow_##x
#define UNIT char
#include "renamed.inc"
#undef NAME
#undef UNIT

#define NAME(x) wide_##x
#define UNIT unsigned short
#define count how_many
#include "renamed.inc"
#undef count

#define length size
struct buffer { int length; int used; };
static int left(struct buffer *buffer, int length) { return buffer->length > length ? buffer->length - buffer->used : 0; }

#define DEFINE(name) static int name(int n) { if (n > 2) return 1; return 0; }
DEFINE(made_by_a_macro)
#define BEGIN {
#define END }
static int strange_braces(int n) BEGIN if (n) return 2; return 3; END

int main(void)
{
	struct buffer buffer = { 10, 4 };
	unsigned short text[] = { 'a', 'b', 0 };
	printf("%d %d\n", narrow_length("hello", 2), wide_length(text, 2));
	printf("%d %d %d\n", left(&buffer, 3), made_by_a_macro(3), strange_braces(0));
	return 0;
}
