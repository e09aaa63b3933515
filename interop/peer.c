/*
 * The other end of `interop`: usrsctp by its public interface, in UDP. Commands on standard input, one a line; what
 * happens on standard output: see lines.h.
 */

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include <usrsctp.h>

/* Before the names of its calls. */
#define CALLS "usrsctp_"

#include "lines.h"

/* Options of later releases, by their numbers: what this one says of them is the evidence. */
#define OPTION_INTERLEAVING 0x00001206
#define OPTION_ZERO_CHECKSUM 0x00000033
#define OPTION_THRESHOLDS 0x00000023
#define INTERLEAVED_FRAGMENTS 2

static struct socket *listener, *association;
static uint16_t remote_udp;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t something = PTHREAD_COND_INITIALIZER;

static void tell(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	pthread_mutex_lock(&output);
	vprintf(format, arguments);
	putchar('\n');
	fflush(stdout);
	pthread_mutex_unlock(&output);
	va_end(arguments);
}

/* The reason of a user-initiated ABORT (cause 12), if the chunk has one. */
static void tell_lost(const struct sctp_assoc_change *change)
{
	const uint8_t *chunk = change->sac_info;
	size_t length = change->sac_length - sizeof *change;
	if (length >= 8 && chunk[0] == SCTP_ABORT_ASSOCIATION && chunk[4] == 0 && chunk[5] == 12) {
		size_t cause = chunk[6] << 8 | chunk[7];
		if (cause >= 4 && cause + 4 <= length) {
			tell("lost by-user %.*s", (int)(cause - 4), (const char *)chunk + 8);
			return;
		}
	}
	tell("lost error %u", change->sac_error);
}

static void tell_up(const char *what, const struct sctp_assoc_change *change)
{
	static const char *features[] = { "", "partial-reliability", "authentication", "addresses", "multibuf",
					  "reconfiguration", "interleaving" };
	char list[256] = "";
	for (size_t n = 0; n < change->sac_length - sizeof *change; n++) {
		uint8_t feature = change->sac_info[n];
		if (feature <= SCTP_ASSOC_SUPPORTS_MAX && strlen(list) < 200) {
			strcat(list, " ");
			strcat(list, features[feature]);
		}
	}
	tell("%s %u %u%s", what, change->sac_outbound_streams, change->sac_inbound_streams, list);
}

static void tell_added(const struct sctp_stream_change_event *event)
{
	tell("streams-added %u %u %s", event->strchange_outstrms, event->strchange_instrms, outcome(event->strchange_flags));
}

static void tell_address(const struct sctp_paddr_change *change)
{
	static const char *states[] = { "", "available", "unreachable", "removed", "added", "primary", "confirmed" };
	char text[INET6_ADDRSTRLEN] = "?";
	if (change->spc_aaddr.ss_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&change->spc_aaddr)->sin_addr, text, sizeof text);
	else if (change->spc_aaddr.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&change->spc_aaddr)->sin6_addr, text, sizeof text);
	tell("address %s %s", text, change->spc_state <= SCTP_ADDR_CONFIRMED ? states[change->spc_state] : "?");
}

/* Reads one piece; whether there was one. */
static bool take(struct socket *from)
{
	static uint8_t bytes[BUFFER];
	struct sctp_rcvinfo info = { 0 };
	socklen_t length = sizeof info, name = 0;
	unsigned int kind = 0;
	int flags = 0;
	ssize_t size = usrsctp_recvv(from, bytes, sizeof bytes, NULL, &name, &info, &length, &kind, &flags);
	if (size <= 0)
		return false;
	if (flags & MSG_NOTIFICATION)
		gather(bytes, (size_t)size, (flags & MSG_EOR) != 0);
	else
		tell_data(bytes, (size_t)size, &info, flags);
	return true;
}

static void wake(struct socket *socket, void *unused, int flags)
{
	(void)socket, (void)unused, (void)flags;
	pthread_cond_signal(&something);
}

/* Reads what there is, when told that there is something, or every few milliseconds. */
static void *listen_and_read(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct timespec until;
		if (association == NULL && listener != NULL) {
			association = usrsctp_accept(listener, NULL, NULL);
			if (association != NULL) {
				usrsctp_set_non_blocking(association, 1);
				usrsctp_set_upcall(association, wake, NULL);
			}
		}
		while (association != NULL && take(association))
			;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 2000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&something, &lock, &until);
	}
	return unused;
}

/* ---- What is asked ---- */

static struct socket *end(void)
{
	return association != NULL ? association : listener;
}

static sctp_assoc_t asked(void)
{
	return SCTP_FUTURE_ASSOC;
}

static int set(int option, const void *value, size_t size)
{
	return usrsctp_setsockopt(end(), IPPROTO_SCTP, option, value, (socklen_t)size);
}

static int buffers(int sending, int receiving)
{
	int result = usrsctp_setsockopt(end(), SOL_SOCKET, SO_SNDBUF, &sending, sizeof sending);
	return result < 0 ? -1 : usrsctp_setsockopt(end(), SOL_SOCKET, SO_RCVBUF, &receiving, sizeof receiving);
}

static int reconfiguration(bool on)
{
	if (set_value(SCTP_RECONFIG_SUPPORTED, on) < 0)
		return -1;
	return on ? set_value(SCTP_ENABLE_STREAM_RESET, SCTP_ENABLE_VALUE_MASK) : 0;
}

static int interleaving(bool on)
{
	int level = INTERLEAVED_FRAGMENTS;
	if (on && set(SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level) < 0)
		return -1;
	return set_value(OPTION_INTERLEAVING, on);
}

/* The sockets' option counts only if the system's is on. */
static int concurrent_multipath_transfer(bool on)
{
	usrsctp_sysctl_set_sctp_cmt_on_off(on);
	return set_value(OPTION_CMT, on ? SCTP_CMT_BASE : SCTP_CMT_OFF);
}

/* SCTP_PEER_ADDR_THLDS of RFC 7829 section 7.3, which the public header does not have. */
static int failing_after(uint16_t errors)
{
	struct {
		struct sockaddr_storage address;
		sctp_assoc_t association;
		uint16_t path_max_retrans, failing, change_primary;
	} wanted = { .address.ss_family = AF_INET, .path_max_retrans = 2, .failing = errors, .change_primary = UINT16_MAX };
	return set(OPTION_THRESHOLDS, &wanted, sizeof wanted);
}

static int delay_of_sacks(uint32_t milliseconds)
{
	struct sctp_sack_info wanted = { .sack_delay = milliseconds };
	return set(SCTP_DELAYED_SACK, &wanted, sizeof wanted);
}

static int own_option(const char *name, const uint32_t *value)
{
	if (strcmp(name, "mtu") == 0)
		return path_parameters(SPP_PMTUD_DISABLE, value[0], 0, 0);
	if (strcmp(name, "cmt") == 0)
		return concurrent_multipath_transfer(value[0] != 0);
	if (strcmp(name, "nr-sack") == 0)
		return set_value(SCTP_NRSACK_SUPPORTED, value[0]);
	if (strcmp(name, "zero-checksum") == 0)
		return set_value(OPTION_ZERO_CHECKSUM, value[0]);
	/* No option of usrsctp switches the notification of RFC 7829 section 7.1 on. */
	errno = strcmp(name, "tell-potentially-failed") == 0 ? ENOPROTOOPT : EINVAL;
	return -1;
}

static void start(uint16_t udp, uint16_t remote)
{
	int on = 1;
	struct sctp_udpencaps port = { .sue_address.ss_family = AF_INET, .sue_port = htons(remote) };
	remote_udp = remote;
	usrsctp_init(udp, NULL, NULL);
	/* Sums are not optional anywhere. */
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	/* Above this many chunks held, 512 by default, it refuses I-DATA that fills a gap: the association hangs until it
	 * is lost, though the window is open. */
	usrsctp_sysctl_set_sctp_max_chunks_on_queue(1 << 16);
	listener = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (listener == NULL) {
		answer("usrsctp_socket", -1);
		return;
	}
	usrsctp_set_non_blocking(listener, 1);
	int result = set(SCTP_REMOTE_UDP_ENCAPS_PORT, &port, sizeof port);
	result = result < 0 ? result : set(SCTP_RECVRCVINFO, &on, sizeof on);
	result = result < 0 ? result : set(SCTP_NODELAY, &on, sizeof on);
	result = result < 0 ? result : subscribe();
	answer("usrsctp_setsockopt", result);
}

/* Adds addresses, or deletes some; of an association that is up, usrsctp tells the peer with an ASCONF. */
static void change_addresses(char **words, int count, bool add)
{
	struct sockaddr_in list[MAX_ADDRESSES];
	int number = addresses(words, count, list);
	int flags = add ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR;
	answer("usrsctp_bindx", usrsctp_bindx(end(), (struct sockaddr *)list, number, flags));
}

static void connect_to(char **words, int count)
{
	struct sockaddr_in list[MAX_ADDRESSES];
	int number = addresses(words, count, list);
	int result = usrsctp_connectx(listener, (struct sockaddr *)list, number, NULL);
	if (result < 0 && errno == EINPROGRESS)
		result = 0;
	association = listener;
	listener = NULL;
	usrsctp_set_upcall(association, wake, NULL);
	answer("usrsctp_connectx", result);
}

static void send_message(char **words)
{
	uint32_t ppid = (uint32_t)strtoul(words[1], NULL, 10);
	size_t size = strtoul(words[2], NULL, 10);
	struct sctp_sendv_spa how = { .sendv_flags = SCTP_SEND_SNDINFO_VALID };
	how.sendv_sndinfo.snd_sid = (uint16_t)atoi(words[0]);
	how.sendv_sndinfo.snd_ppid = htonl(ppid);
	how.sendv_sndinfo.snd_flags = strcmp(words[3], "unordered") == 0 ? SCTP_UNORDERED : 0;
	if (strcmp(words[4], "full") != 0) {
		how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		how.sendv_prinfo.pr_policy = strcmp(words[4], "lifetime") == 0 ? SCTP_PR_SCTP_TTL : SCTP_PR_SCTP_RTX;
		how.sendv_prinfo.pr_value = (uint32_t)strtoul(words[5], NULL, 10);
	}
	uint8_t *bytes = malloc(size);
	for (size_t n = 0; n < size; n++)
		bytes[n] = content(ppid, n);
	ssize_t sent = usrsctp_sendv(end(), bytes, size, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0);
	free(bytes);
	answer("usrsctp_sendv", sent < 0 ? -1 : 0);
}

static void abort_for(const char *reason)
{
	struct sctp_sndinfo how = { .snd_flags = SCTP_ABORT };
	ssize_t sent =
		usrsctp_sendv(end(), reason, strlen(reason), NULL, 0, &how, sizeof how, SCTP_SENDV_SNDINFO, 0);
	answer("usrsctp_sendv, SCTP_ABORT", sent < 0 ? -1 : 0);
}

static void begin_to_listen(void)
{
	usrsctp_set_upcall(listener, wake, NULL);
	answer("usrsctp_listen", usrsctp_listen(listener, 1));
}

static void shut_down(void)
{
	answer("usrsctp_shutdown", usrsctp_shutdown(end(), SHUT_WR));
}

static bool own_command(const char *command)
{
	(void)command;
	return false;
}

int main(void)
{
	static char line[MAX_LINE];
	pthread_t reader;
	if (pthread_create(&reader, NULL, listen_and_read, NULL) != 0)
		return 1;
	while (fgets(line, sizeof line, stdin) != NULL) {
		pthread_mutex_lock(&lock);
		obey_line(line);
		pthread_mutex_unlock(&lock);
	}
	/* Standard input has ended: so has the test. What is still under way is nobody's any more. */
	_Exit(0);
}
