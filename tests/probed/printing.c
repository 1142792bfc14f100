/* A program with functions of the C library of its own, as those for small machines have: no long numbers, and helpers that carry probes. */
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

static size_t put(char *text, size_t size, size_t place, char c)
{
	if (place + 1 < size)
		text[place] = c;
	return place + 1;
}

static size_t put_number(char *text, size_t size, size_t place, int number)
{
	return put(text, size, number > 9 ? put_number(text, size, place, number / 10) : place, (char)('0' + number % 10));
}

int snprintf(char *text, size_t size, const char *format, ...)
{
	size_t place = 0;
	va_list values;

	va_start(values, format);
	for (; *format; format++) {
		if (*format == '%' && *++format == 'd')
			place = put_number(text, size, place, va_arg(values, int));
		else
			place = put(text, size, place, *format);
	}
	va_end(values);
	if (size)
		text[place < size ? place : size - 1] = '\0';
	return (int)place;
}

void *memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

int main(void)
{
	char line[64], copy[64];

	for (int i = 0; i < 20; i++) {
		int length = snprintf(line, sizeof(line), "%d times %d is %d\n", i, i, i * i);

		memcpy(copy, line, sizeof(line));
		if (write(1, copy, (size_t)length) != length)
			return 1;
	}
	return 0;
}
