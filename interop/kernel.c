/*
 * The Linux kernel's SCTP as a peer: commands on standard input, one a line; what happens on standard output, one a
 * line that begins with '@', because the console of the machine that this runs in says other things too. The commands
 * and lines are those of lines.h; `start` begins anew, and aborts what there was; `forget` only aborts it, and `quit` ends
 * the program.
 */

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <linux/sctp.h>

/* Before the names of its calls. */
#define CALLS ""

#include "lines.h"

/* Zero Checksum (RFC 9653) has no option in this kernel; the number is FreeBSD's. */
#define OPTION_ZERO_CHECKSUM 0x1209
/* The kernel's SCTP_PF_EXPOSE_ENABLE, which its headers for programs do not have. */
#define TELL_POTENTIALLY_FAILED 2

static int end = -1;
static sctp_assoc_t association;
/* Streams out and in. */
static unsigned streams_now[2];

static void tell(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	putchar('@');
	vprintf(format, arguments);
	putchar('\n');
	fflush(stdout);
	va_end(arguments);
}

/* The causes of an ABORT, without the chunk's header; 12 is the user's. */
static void tell_lost(const struct sctp_assoc_change *change)
{
	const uint8_t *cause = change->sac_info;
	size_t length = change->sac_length - sizeof *change;
	if (length >= 4 && cause[0] == 0 && cause[1] == 12) {
		size_t size = (size_t)(cause[2] << 8 | cause[3]);
		if (size >= 4 && size <= length) {
			tell("lost by-user %.*s", (int)(size - 4), (const char *)cause + 4);
			return;
		}
	}
	tell("lost error %u", change->sac_error);
}

/* Whether both ends of the association use an extension. */
static bool uses(int option)
{
	struct sctp_assoc_value value = { .assoc_id = association };
	socklen_t length = sizeof value;
	return getsockopt(end, IPPROTO_SCTP, option, &value, &length) == 0 && value.assoc_value != 0;
}

static void tell_up(const char *what, const struct sctp_assoc_change *change)
{
	association = change->sac_assoc_id;
	streams_now[0] = change->sac_outbound_streams;
	streams_now[1] = change->sac_inbound_streams;
	tell("%s %u %u%s%s%s%s%s", what, streams_now[0], streams_now[1],
	     uses(SCTP_PR_SUPPORTED) ? " partial-reliability" : "", uses(SCTP_AUTH_SUPPORTED) ? " authentication" : "",
	     uses(SCTP_ASCONF_SUPPORTED) ? " addresses" : "", uses(SCTP_RECONFIG_SUPPORTED) ? " reconfiguration" : "",
	     uses(SCTP_INTERLEAVING_SUPPORTED) ? " interleaving" : "");
}

/* RFC 6525 section 6.1.3 has the streams that there are in this event; this kernel tells how many were added. */
static void tell_added(const struct sctp_stream_change_event *event)
{
	bool done = strcmp(outcome(event->strchange_flags), "done") == 0;
	streams_now[0] += done ? event->strchange_outstrms : 0;
	streams_now[1] += done ? event->strchange_instrms : 0;
	tell("streams-added %u %u %s", streams_now[0], streams_now[1], outcome(event->strchange_flags));
}

static void tell_address(const struct sctp_paddr_change *change)
{
	static const char *states[] = { "available", "unreachable", "removed", "added", "primary", "confirmed", "failing" };
	const struct sockaddr_in *place = (const struct sockaddr_in *)&change->spc_aaddr;
	char text[INET6_ADDRSTRLEN] = "?";
	if (place->sin_family == AF_INET)
		inet_ntop(AF_INET, &place->sin_addr, text, sizeof text);
	bool known = change->spc_state >= 0 && (size_t)change->spc_state < sizeof states / sizeof *states;
	tell("address %s %s", text, known ? states[change->spc_state] : "?");
}

/* Reads one piece; whether there was one. */
static bool take(void)
{
	static uint8_t bytes[BUFFER];
	uint8_t control[CMSG_SPACE(sizeof(struct sctp_rcvinfo)) + 64];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof control };
	struct sctp_rcvinfo info = { 0 };
	ssize_t size = recvmsg(end, &message, MSG_DONTWAIT);
	if (size <= 0)
		return false;
	for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL; one = CMSG_NXTHDR(&message, one))
		if (one->cmsg_level == IPPROTO_SCTP && one->cmsg_type == SCTP_RCVINFO)
			memcpy(&info, CMSG_DATA(one), sizeof info);
	if (message.msg_flags & MSG_NOTIFICATION)
		gather(bytes, (size_t)size, (message.msg_flags & MSG_EOR) != 0);
	else
		tell_data(bytes, (size_t)size, &info, message.msg_flags);
	return true;
}

/* ---- What is asked ---- */

static sctp_assoc_t asked(void)
{
	return association;
}

static int set(int option, const void *value, size_t size)
{
	return setsockopt(end, IPPROTO_SCTP, option, value, (socklen_t)size);
}

static int buffers(int sending, int receiving)
{
	int result = setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &sending, sizeof sending);
	return result < 0 ? -1 : setsockopt(end, SOL_SOCKET, SO_RCVBUFFORCE, &receiving, sizeof receiving);
}

static int reconfiguration(bool on)
{
	int all = SCTP_ENABLE_RESET_STREAM_REQ | SCTP_ENABLE_RESET_ASSOC_REQ | SCTP_ENABLE_CHANGE_ASSOC_REQ;
	if (set_value(SCTP_RECONFIG_SUPPORTED, on) < 0)
		return -1;
	return on ? set_value(SCTP_ENABLE_STREAM_RESET, (uint32_t)all) : 0;
}

static int interleaving(bool on)
{
	int level = 1;
	if (on && set(SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level) < 0)
		return -1;
	/* By default one message leaves after the other. */
	if (on && set_value(SCTP_STREAM_SCHEDULER, SCTP_SS_RR) < 0)
		return -1;
	return on ? set_value(SCTP_INTERLEAVING_SUPPORTED, 1) : 0;
}

static int delay_of_sacks(uint32_t milliseconds)
{
	struct sctp_sack_info wanted = { .sack_delay = milliseconds, .sack_freq = 2 };
	return set(SCTP_DELAYED_SACK, &wanted, sizeof wanted);
}

static int failing_after(uint16_t errors)
{
	struct sctp_paddrthlds wanted = { .spt_assoc_id = SCTP_FUTURE_ASSOC, .spt_pathmaxrxt = 2, .spt_pathpfthld = errors };
	return set(SCTP_PEER_ADDR_THLDS, &wanted, sizeof wanted);
}

static int own_option(const char *name, const uint32_t *value)
{
	/* The interfaces have it. */
	if (strcmp(name, "mtu") == 0)
		return 0;
	if (strcmp(name, "tell-potentially-failed") == 0)
		return set_value(SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, value[0] ? TELL_POTENTIALLY_FAILED : 0);
	if (strcmp(name, "cmt") == 0)
		return set_value(OPTION_CMT, value[0]);
	if (strcmp(name, "zero-checksum") == 0)
		return set_value(OPTION_ZERO_CHECKSUM, value[0]);
	/* Linux has no NR-SACK. */
	errno = strcmp(name, "nr-sack") == 0 ? ENOPROTOOPT : EINVAL;
	return -1;
}

static int system_wide(const char *name, unsigned value)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/net/sctp/%s", name);
	FILE *file = fopen(path, "w");
	if (file == NULL)
		return -1;
	int written = fprintf(file, "%u\n", value);
	return fclose(file) == 0 && written > 0 ? 0 : -1;
}

/* Ends what there was at once. */
static void forget(void)
{
	struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
	if (end >= 0) {
		setsockopt(end, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(end);
	}
	end = -1;
	association = 0;
	memset(parts, 0, sizeof parts);
}

/* UDP ports here and there; none: directly on IP. */
static void start(uint16_t udp, uint16_t remote)
{
	int on = 1;
	forget();
	int result = system_wide("udp_port", 0);
	result = result < 0 || udp == 0 ? result : system_wide("udp_port", udp);
	result = result < 0 ? result : system_wide("encap_port", remote);
	result = result < 0 ? result : system_wide("intl_enable", 1);
	end = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	/* What ended a moment ago may still have the port. */
	result = result < 0 || end < 0 ? -1 : setsockopt(end, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	result = result < 0 ? result : set(SCTP_RECVRCVINFO, &on, sizeof on);
	result = result < 0 ? result : set(SCTP_NODELAY, &on, sizeof on);
	result = result < 0 ? result : subscribe();
	answer("socket, setsockopt", result);
}

/* Adds addresses, or deletes some; of an association that is up, the kernel tells the peer with an ASCONF. */
static void change_addresses(char **words, int count, bool add)
{
	struct sockaddr_in list[MAX_ADDRESSES];
	int number = addresses(words, count, list);
	int option = add ? SCTP_SOCKOPT_BINDX_ADD : SCTP_SOCKOPT_BINDX_REM;
	answer("bindx", set(option, list, (size_t)number * sizeof *list));
}

static void begin_to_listen(void)
{
	answer("listen", listen(end, 1));
}

static void connect_to(char **words, int count)
{
	struct sockaddr_in list[MAX_ADDRESSES];
	int number = addresses(words, count, list);
	fcntl(end, F_SETFL, O_NONBLOCK);
	int result = set(SCTP_SOCKOPT_CONNECTX, list, (size_t)number * sizeof *list);
	fcntl(end, F_SETFL, 0);
	answer("connectx", result < 0 && errno == EINPROGRESS ? 0 : result);
}

/* A message with what goes with it; or only that. */
static int send_with(const void *bytes, size_t size, const struct sctp_sndinfo *how, const struct sctp_prinfo *limit)
{
	uint8_t control[CMSG_SPACE(sizeof *how) + CMSG_SPACE(sizeof *limit)] = { 0 };
	struct iovec part = { (void *)bytes, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = size > 0, .msg_control = control,
				  .msg_controllen = CMSG_SPACE(sizeof *how) };
	struct cmsghdr *one = (struct cmsghdr *)control;
	*one = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO,
				 .cmsg_len = CMSG_LEN(sizeof *how) };
	memcpy(CMSG_DATA(one), how, sizeof *how);
	if (limit != NULL) {
		message.msg_controllen = sizeof control;
		one = (struct cmsghdr *)(control + CMSG_SPACE(sizeof *how));
		*one = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_PRINFO,
					 .cmsg_len = CMSG_LEN(sizeof *limit) };
		memcpy(CMSG_DATA(one), limit, sizeof *limit);
	}
	return sendmsg(end, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static void send_message(char **words)
{
	uint32_t ppid = (uint32_t)strtoul(words[1], NULL, 10);
	size_t size = strtoul(words[2], NULL, 10);
	struct sctp_sndinfo how = { .snd_sid = (uint16_t)atoi(words[0]),
				    .snd_ppid = htonl(ppid),
				    .snd_flags = strcmp(words[3], "unordered") == 0 ? SCTP_UNORDERED : 0,
				    .snd_assoc_id = association };
	bool lifetime = strcmp(words[4], "lifetime") == 0, limited = strcmp(words[4], "full") != 0;
	struct sctp_prinfo limit = { .pr_policy = lifetime ? SCTP_PR_SCTP_TTL : SCTP_PR_SCTP_RTX,
				     .pr_value = (uint32_t)strtoul(words[5], NULL, 10) };
	uint8_t *bytes = malloc(size);
	for (size_t n = 0; n < size; n++)
		bytes[n] = content(ppid, n);
	int result = send_with(bytes, size, &how, limited ? &limit : NULL);
	free(bytes);
	answer("sendmsg", result);
}

static void finish(uint16_t flag, const char *reason)
{
	struct sctp_sndinfo how = { .snd_flags = flag, .snd_assoc_id = association };
	answer("sendmsg, SCTP_EOF or SCTP_ABORT", send_with(reason, strlen(reason), &how, NULL));
}

static void shut_down(void)
{
	finish(SCTP_EOF, "");
}

static void abort_for(const char *reason)
{
	finish(SCTP_ABORT, reason);
}

static bool own_command(const char *command)
{
	if (strcmp(command, "quit") == 0)
		exit(0);
	if (strcmp(command, "forget") != 0)
		return false;
	forget();
	tell("ok");
	return true;
}

/* Obeys every whole line that was read; what is left of the last one stays. */
static size_t obey_lines(char *text, size_t length)
{
	char *rest = text, *newline;
	while ((newline = memchr(rest, '\n', length - (size_t)(rest - text))) != NULL) {
		*newline = '\0';
		obey_line(rest);
		rest = newline + 1;
	}
	size_t left = length - (size_t)(rest - text);
	memmove(text, rest, left);
	return left;
}

int main(void)
{
	static char text[MAX_LINE];
	size_t length = 0;
	tell("ready");
	for (;;) {
		struct pollfd wait[2] = { { STDIN_FILENO, POLLIN, 0 }, { end, POLLIN, 0 } };
		if (poll(wait, end < 0 ? 1 : 2, 1000) < 0)
			continue;
		while (end >= 0 && take())
			;
		if (wait[0].revents == 0)
			continue;
		ssize_t more = read(STDIN_FILENO, text + length, sizeof text - length);
		/* Standard input has ended: so has the test. */
		if (more <= 0)
			return 0;
		length = obey_lines(text, length + (size_t)more);
	}
}
