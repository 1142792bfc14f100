/*
 * The first and only process of the emulated machine: does the jobs of /jobs one after the other, sends home what they recorded, and
 * switches the machine off. A job is a line `NAME VARIABLE=VALUE… PROGRAM ARGUMENT…`.
 *
 * What goes over the wire, all numbers 32 bits, little-endian: per job its name (length, bytes), its wait status, and its files, each
 * with length and bytes without the zeros at its end, and the number of these; then a length of 0.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define FOLDER "/out"
#define WORDS 32

static void send(int wire, const void *data, size_t size)
{
	for (const char *rest = data; size > 0;) {
		ssize_t sent = write(wire, rest, size);

		if (sent <= 0)
			return;
		rest += sent;
		size -= (size_t)sent;
	}
}

static void send_number(int wire, uint32_t number)
{
	send(wire, &number, sizeof(number));
}

static void send_file(int wire, const char *path)
{
	int file = open(path, O_RDONLY);
	struct stat status;
	char *bytes;
	size_t size, used;

	if (file < 0 || fstat(file, &status))
		return;
	size = used = (size_t)status.st_size;
	bytes = malloc(size + 1);
	for (size_t have = 0; have < size;) {
		ssize_t more = read(file, bytes + have, size - have);

		if (more <= 0)
			exit(1);
		have += (size_t)more;
	}
	while (used > 0 && !bytes[used - 1])
		used--;
	send_number(wire, (uint32_t)used);
	send(wire, bytes, used);
	send_number(wire, (uint32_t)(size - used));
	free(bytes);
	close(file);
	unlink(path);
}

static void send_folder(int wire)
{
	DIR *folder = opendir(FOLDER);
	struct dirent *entry;
	char path[512];

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), FOLDER "/%s", entry->d_name);
		if (entry->d_name[0] != '.')
			send_file(wire, path);
	}
	if (folder)
		closedir(folder);
	send_number(wire, 0);
}

static int run(char **words)
{
	char *environment[WORDS] = {"LD_LIBRARY_PATH=/lib"};
	int variables = 1, status;
	pid_t child;

	while (*words && strchr(*words, '=') && variables < WORDS - 1)
		environment[variables++] = *words++;
	child = fork();
	if (child == 0) {
		execve(words[0], words, environment);
		_exit(127);
	}
	return waitpid(child, &status, 0) == child ? status : -1;
}

int main(void)
{
	char line[4096], *words[WORDS];
	struct termios raw;
	FILE *jobs;
	int wire;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tmpfs", FOLDER, "tmpfs", 0, NULL);
	wire = open("/dev/ttyAMA0", O_RDWR | O_NOCTTY);
	tcgetattr(wire, &raw);
	cfmakeraw(&raw);
	tcsetattr(wire, TCSANOW, &raw);
	jobs = fopen("/jobs", "r");
	while (jobs && fgets(line, sizeof(line), jobs)) {
		int count = 0;

		for (char *word = strtok(line, " \n"); word && count < WORDS - 1; word = strtok(NULL, " \n"))
			words[count++] = word;
		words[count] = NULL;
		if (count < 2)
			continue;
		send_number(wire, (uint32_t)strlen(words[0]));
		send(wire, words[0], strlen(words[0]));
		send_number(wire, (uint32_t)run(words + 1));
		send_folder(wire);
	}
	tcdrain(wire);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
