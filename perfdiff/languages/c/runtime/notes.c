/*
 * What a process tells of its probes, one line each in `<pid>.remarks` beside its recording: a word, a tab, a text. The parts of other languages
 * call it; one that is built without the runtime is built with this file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime.h"

PD_API void pd_note(const char *word, const char *text)
{
	const char *folder = getenv("PERFDIFF_OUT");
	char path[4096], line[4096];
	int length, file;

	if (!folder || snprintf(path, sizeof(path), "%s/%ld.remarks", folder, (long)getpid()) >= (int)sizeof(path))
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
