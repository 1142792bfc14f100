/*
 * What a process tells of its probes, one line each in `<pid>.remarks` beside its recording: a word, a tab, a text. The parts of other languages
 * call it; one that is built without the runtime is built with this file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

static char folder[3072]; /* kept, as php-fpm takes the environment from its workers */

__attribute__((constructor)) static void notes_begin(void)
{
	const char *given = secure_getenv("PERFDIFF_OUT");

	if (given && strlen(given) < sizeof(folder))
		strcpy(folder, given);
}

PD_API void pd_note(const char *word, const char *text)
{
	char path[4096], line[4096];
	int length, file;

	if (!folder[0] || snprintf(path, sizeof(path), "%s/%ld.remarks", folder, (long)getpid()) >= (int)sizeof(path))
		return;
	length = snprintf(line, sizeof(line), "%s\t%s\n", word, text);
	if (length < 0 || length >= (int)sizeof(line))
		return;
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0)
		return;
	if (write(file, line, (size_t)length) < length)
		unlink(path); /* half a line says something else */
	close(file);
}
