/* Single-threaded kernels whose counted build is timed by counted.py. Usage: NAME ROUNDS [counts] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 12345;

static uint32_t next(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

static void *memory(size_t size)
{
	void *found = malloc(size);

	if (!found)
		exit(1);
	return found;
}

#define N 256
/* Room between the matrices: a whole number of pages apart, loads would wait for stores to other ones. */
static struct {
	double a[N][N], room[N / 8], b[N][N], more[N / 4], c[N][N];
} matrices;

static double matrix_product(long rounds)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			matrices.a[i][j] = i + j, matrices.b[i][j] = i - j;
	for (long round = 0; round < rounds; round++)
		for (int i = 0; i < N; i++)
			for (int k = 0; k < N; k++)
				for (int j = 0; j < N; j++)
					matrices.c[i][j] += matrices.a[i][k] * matrices.b[k][j];
	return matrices.c[7][9];
}

struct node {
	struct node *next;
	long value;
};

static double list_traversal(long rounds)
{
	enum { NODES = 20000 };
	struct node *nodes = memory(NODES * sizeof(*nodes)), *head = NULL;
	int *order = memory(NODES * sizeof(*order));
	long sum = 0;

	for (int i = 0; i < NODES; i++) {
		int place = (int)(next() % (unsigned)(i + 1));

		order[i] = order[place];
		order[place] = i;
	}
	for (int i = 0; i < NODES; i++) {
		nodes[order[i]] = (struct node){head, i};
		head = &nodes[order[i]];
	}
	for (long round = 0; round < rounds; round++)
		for (struct node *node = head; node; node = node->next)
			sum += node->value;
	return (double)sum;
}

static double hash_table(long rounds)
{
	enum { SLOTS = 1 << 17, KEYS = 60000 };
	uint32_t *keys = memory(SLOTS * sizeof(*keys)), *counts = memory(SLOTS * sizeof(*counts));
	uint32_t found = 0;

	memset(keys, 0, SLOTS * sizeof(*keys));
	memset(counts, 0, SLOTS * sizeof(*counts));
	for (long round = 0; round < rounds * 1000; round++) {
		uint32_t key = 1 + next() % KEYS, slot = key * 2654435761u % SLOTS;

		while (keys[slot] && keys[slot] != key)
			slot = (slot + 1) % SLOTS;
		keys[slot] = key;
		found += counts[slot]++;
	}
	return found;
}

static void quicksort(int *values, long low, long high)
{
	while (low < high) {
		int pivot = values[(low + high) / 2];
		long i = low, j = high;

		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i <= j) {
				int held = values[i];

				values[i++] = values[j];
				values[j--] = held;
			}
		}
		quicksort(values, low, j);
		low = i;
	}
}

static double sort(long rounds)
{
	enum { VALUES = 20000 };
	int *values = memory(VALUES * sizeof(*values));

	for (long round = 0; round < rounds; round++) {
		for (int i = 0; i < VALUES; i++)
			values[i] = (int)next();
		quicksort(values, 0, VALUES - 1);
	}
	return values[VALUES / 2];
}

static double string_scan(long rounds)
{
	enum { LENGTH = 1 << 20 };
	char *text = memory(LENGTH + 1);
	long words = 0;

	for (int i = 0; i < LENGTH; i++)
		text[i] = next() % 6 ? (char)('a' + next() % 26) : ' ';
	text[LENGTH] = 0;
	for (long round = 0; round < rounds; round++) {
		int inside = 0;

		for (const char *at = text; *at; at++) {
			words += *at != ' ' && !inside;
			inside = *at != ' ';
		}
	}
	return (double)words;
}

struct sums {
	long x, y, xx, yy, xy;
};

static __attribute__((noinline)) void regress(struct sums *sums, const signed char *points, long count)
{
	for (long i = 0; i < count; i++) {
		sums->x += points[2 * i];
		sums->y += points[2 * i + 1];
		sums->xx += points[2 * i] * points[2 * i];
		sums->yy += points[2 * i + 1] * points[2 * i + 1];
		sums->xy += points[2 * i] * points[2 * i + 1];
	}
}

static double linear_regression(long rounds)
{
	enum { POINTS = 500000 };
	signed char *points = memory(2 * POINTS);
	struct sums sums = {0};

	for (int i = 0; i < 2 * POINTS; i++)
		points[i] = (signed char)next();
	for (long round = 0; round < rounds; round++)
		regress(&sums, points, POINTS);
	return (double)(sums.xy + sums.xx);
}

static double histogram(long rounds)
{
	enum { PIXELS = 500000 };
	static long red[256], green[256], blue[256];
	unsigned char *image = memory(3 * PIXELS);

	for (int i = 0; i < 3 * PIXELS; i++)
		image[i] = (unsigned char)next();
	for (long round = 0; round < rounds; round++)
		for (int i = 0; i < PIXELS; i++) {
			red[image[3 * i]]++;
			green[image[3 * i + 1]]++;
			blue[image[3 * i + 2]]++;
		}
	return (double)(red[7] + green[8] + blue[9]);
}

static double k_medoids(long rounds)
{
	enum { POINTS = 2000, DIMENSIONS = 8, MEDOIDS = 16 };
	float (*points)[DIMENSIONS] = memory(sizeof(float[POINTS][DIMENSIONS]));
	double cost = 0;

	for (int i = 0; i < POINTS; i++)
		for (int d = 0; d < DIMENSIONS; d++)
			points[i][d] = (float)(next() % 1000);
	for (long round = 0; round < rounds; round++)
		for (int i = 0; i < POINTS; i++) {
			float nearest = 1e30f;

			for (int m = 0; m < MEDOIDS; m++) {
				float distance = 0;

				for (int d = 0; d < DIMENSIONS; d++) {
					float difference = points[i][d] - points[m * 100 + round % 100][d];

					distance += difference * difference;
				}
				nearest = distance < nearest ? distance : nearest;
			}
			cost += nearest;
		}
	return cost;
}

struct links {
	int count, room;
	int *documents;
};

static double reverse_index(long rounds)
{
	enum { WORDS = 4096 };
	static struct links index[WORDS];
	long total = 0;

	for (long round = 0; round < rounds; round++) {
		for (int document = 0; document < 20000; document++) {
			struct links *links = &index[next() * (uint64_t)next() % WORDS];

			if (links->count == links->room) {
				links->room = links->room ? 2 * links->room : 4;
				links->documents = realloc(links->documents, (size_t)links->room * sizeof(int));
				if (!links->documents)
					exit(1);
			}
			links->documents[links->count++] = document;
		}
	}
	for (int word = 0; word < WORDS; word++)
		for (int i = 0; i < index[word].count; i++)
			total += index[word].documents[i];
	return (double)total;
}

struct tree {
	struct tree *left, *right;
	uint32_t key;
};

static double search_tree(long rounds)
{
	struct tree *root = NULL;
	long depth = 0;

	for (long round = 0; round < rounds * 1000; round++) {
		uint32_t key = next() % 20000;
		struct tree **at = &root;

		while (*at && (*at)->key != key) {
			at = key < (*at)->key ? &(*at)->left : &(*at)->right;
			depth++;
		}
		if (!*at) {
			*at = memory(sizeof(**at));
			**at = (struct tree){.key = key};
		}
	}
	return (double)depth;
}

static const struct {
	const char *name;
	double (*run)(long rounds);
} kernels[] = {
	{"matrix-product", matrix_product},
	{"list-traversal", list_traversal},
	{"hash-table", hash_table},
	{"sort", sort},
	{"string-scan", string_scan},
	{"linear-regression", linear_regression},
	{"histogram", histogram},
	{"k-medoids", k_medoids},
	{"reverse-index", reverse_index},
	{"search-tree", search_tree},
};

/* Of the counted build alone. */
void pd_pmu_read(uint64_t events[9]) __attribute__((weak));

static void print_counts(void)
{
	uint64_t events[9];

	if (!pd_pmu_read)
		exit(1);
	pd_pmu_read(events);
	for (int i = 0; i < 9; i++)
		printf("%llu\n", (unsigned long long)events[i]);
}

int main(int count, char **arguments)
{
	for (size_t i = 0; count >= 3 && i < sizeof(kernels) / sizeof(*kernels); i++) {
		if (strcmp(arguments[1], kernels[i].name))
			continue;
		printf("%g\n", kernels[i].run(atol(arguments[2])));
		if (count > 3)
			print_counts();
		return 0;
	}
	return 2;
}
