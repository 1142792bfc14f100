/*
 * The interpreter of a made-up language, with the part that its language pack puts there. Usage: toy SCRIPT N
 *
 *   def NAME      begins a function; main is called with N
 *   spend K       keeps the processor busy for K rounds
 *   call NAME     calls a function with the same N
 *   each NAME     calls it N times
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "perfdiff_probe.h"

#define MOST 32

struct step {
	char what[8], name[32];
};

struct function {
	char name[32];
	unsigned int probe, features; /* by the sheet */
	int length;
	struct step steps[MOST];
};

static struct function functions[MOST];
static int count;
static volatile long sink;

static struct function *find(const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	fprintf(stderr, "no function %s\n", name);
	exit(1);
}

static void run(struct function *function, long n)
{
	struct pd_frame frame __attribute__((cleanup(pd_leave))) = {function->probe, 0, 0, 0};

	if (pd_enter(&frame)) {
		if (function->features)
			pd_signed(&frame, 0, n);
		pd_start(&frame);
	}
	for (struct step *step = function->steps; step < function->steps + function->length; step++) {
		if (!strcmp(step->what, "spend"))
			for (long left = atol(step->name); left > 0; left--)
				sink += left;
		else
			for (long left = step->what[0] == 'e' ? n : 1; left > 0; left--)
				run(find(step->name), n);
	}
}

static void read_script(const char *path)
{
	struct step step;
	FILE *file = fopen(path, "r");

	while (fscanf(file, "%7s %31s", step.what, step.name) == 2) {
		if (!strcmp(step.what, "def"))
			strcpy(functions[count++].name, step.name);
		else
			functions[count - 1].steps[functions[count - 1].length++] = step;
	}
	fclose(file);
}

/* Lines of a name, the number of its probe, and how many features that reads. */
static void read_sheet(const char *path)
{
	char name[32];
	unsigned int probe, features;
	FILE *file = fopen(path, "r");

	while (fscanf(file, "%31s %u %u", name, &probe, &features) == 3) {
		struct function *function = find(name);

		function->probe = probe;
		function->features = features;
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	read_script(argv[1]);
	if (getenv("TOY_SHEET"))
		read_sheet(getenv("TOY_SHEET"));
	run(find("main"), atol(argv[2]));
	return 0;
}
