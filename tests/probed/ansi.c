/* C89 and before, as pedantic compilers take it. */
#include <stdio.h>
#include <string.h>

struct list { struct list *next; long value; char name[8]; unsigned flag : 3; };
typedef int (*visitor)();

static long total, calls;

static int old_style(count, name, scale, list)
	int count;
	char *name;
	float scale;
	register struct list *list;
{
	int i;
	long sum = 0;
	for (i = 0; i < count && list; i++, list = list->next) sum += list->value;
	calls++;
	return (int)(scale * (float)sum) + (int)strlen(name);
}

int implicit(a) int a; { return a ? a + 1 : 0; }

static int visit(list, each)
	struct list *list;
	visitor each;
{
	int seen = 0;
	while (list) {
		struct list *next = list->next;
		if ((*each)(list)) seen++;
		list = next;
	}
	return seen;
}

static int count_flags(struct list *one)
{
	enum { LOW = 1, HIGH = 4 } level = one->flag > LOW ? HIGH : LOW;
	total += (long)level;
	return one->flag & 1;
}

static int by_value(struct list one, register struct list other, const char path[])
{
	return one.value > other.value ? (int)strlen(path) : -1;
}

int main(void)
{
	struct list third, second, first;
	third.next = 0; third.value = 3; third.flag = 5; strcpy(third.name, "c");
	second.next = &third; second.value = 20; second.flag = 0; strcpy(second.name, "b");
	first.next = &second; first.value = 100; first.flag = 3; strcpy(first.name, "a");
	printf("%d %d\n", old_style(2, "name", 1.5, &first), implicit(4));
	printf("%d", visit(&first, (visitor)count_flags));
	printf(" %ld %ld\n", total, calls);
	printf("%d\n", by_value(first, second, "/tmp/x"));
	return 0;
}
