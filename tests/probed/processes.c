/* Threads and children, all in probed functions. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static long work(long n)
{
	long sum = 0;
	for (long i = 0; i < n; i++) sum += i % 3 ? i : -i;
	pthread_mutex_lock(&lock);
	shared += sum;
	pthread_mutex_unlock(&lock);
	return sum;
}

static void *run(void *argument)
{
	long n = *(const long *)argument;
	for (int i = 0; i < 50; i++) work(n);
	if (n == 3) pthread_exit(NULL);
	return NULL;
}

static int child(int n)
{
	if (n > 2) _exit(n);
	return (int)work(n);
}

static int spawn(int n)
{
	int status = 0;
	pid_t process = fork();
	if (process == 0) exit(child(n));
	return waitpid(process, &status, 0) == process && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	pthread_t threads[4];
	long sizes[4] = { 1, 2, 3, 100 };
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, run, &sizes[i])) return 1;
	for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
	printf("%ld %d %d\n", shared, spawn(2), spawn(5));
	return 0;
}
