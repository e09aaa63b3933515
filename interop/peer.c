/*
 * The other end of `interop`: usrsctp by its public interface, in UDP, behind a protocol of lines.
 *
 * Every line on standard input is a command; each is answered by one line: `ok`, `refused CALL: WHY`, or `busy`, which
 * is to say that it may work later. What happens
 * to the association is said at any time, a line each, by the words in `tell_notification` and `tell_data`.
 *
 *   start UDP REMOTE                  UDP ports here and there; to be said first
 *   option NAME NUMBER...             see `options`
 *   key ID TEXT                       a shared key, with which DATA has to be authenticated
 *   bind PORT ADDRESS...              SCTP port and addresses; of an association that is up, more of them
 *   unbind PORT ADDRESS...            deletes addresses
 *   listen | connect PORT ADDRESS...
 *   send STREAM PPID SIZE FLAGS POLICY VALUE
 *   reset FLAGS STREAM... | add OUT IN | reset-tsns | shutdown | abort REASON
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <usrsctp.h>

#define MAX_WORDS 64
#define MAX_LINE 4096
#define MAX_ADDRESSES 8
#define MAX_STREAMS 64
#define BUFFER (1 << 16)

/* Options of later releases, by their numbers: what this one says of them is the evidence. */
#define OPTION_INTERLEAVING 0x00001206
#define OPTION_CMT 0x00001200
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

static void answer(const char *call, int result)
{
	if (result < 0 && errno == EAGAIN)
		tell("busy");
	else if (result < 0)
		tell("refused %s: %s", call, strerror(errno));
	else
		tell("ok");
}

/* What messages consist of: the same in src/letter.rs. */
static uint8_t content(uint32_t number, size_t place)
{
	return (uint8_t)(number * 131 + place * 7 + (place >> 8) * 13);
}

static uint64_t hash(uint64_t hash, const uint8_t *bytes, size_t length)
{
	for (size_t n = 0; n < length; n++)
		hash = (hash ^ bytes[n]) * 0x100000001b3;
	return hash;
}

/* ---- What arrives ---- */

/* A message of which a part was read: one for each stream and order. */
struct part {
	bool begun;
	size_t size;
	uint64_t hash;
};

static struct part parts[1 << 16][2];

static void tell_data(const uint8_t *bytes, size_t length, const struct sctp_rcvinfo *info, int flags)
{
	bool unordered = (info->rcv_flags & SCTP_UNORDERED) != 0;
	struct part *part = &parts[info->rcv_sid][unordered];
	if (!part->begun)
		*part = (struct part){ true, 0, 0xcbf29ce484222325 };
	part->hash = hash(part->hash, bytes, length);
	part->size += length;
	if (flags & MSG_EOR) {
		tell("message %u %u %zu %016llx %s", info->rcv_sid, ntohl(info->rcv_ppid), part->size,
		     (unsigned long long)part->hash, unordered ? "unordered" : "ordered");
		part->begun = false;
	}
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

static void tell_change(const struct sctp_assoc_change *change)
{
	static const char *features[] = { "", "partial-reliability", "authentication", "addresses", "multibuf",
					  "reconfiguration", "interleaving" };
	char list[256] = "";
	switch (change->sac_state) {
	case SCTP_COMM_UP:
	case SCTP_RESTART:
		for (size_t n = 0; n < change->sac_length - sizeof *change; n++) {
			uint8_t feature = change->sac_info[n];
			if (feature <= SCTP_ASSOC_SUPPORTS_MAX && strlen(list) < 200) {
				strcat(list, " ");
				strcat(list, features[feature]);
			}
		}
		tell("%s %u %u%s", change->sac_state == SCTP_COMM_UP ? "up" : "restart", change->sac_outbound_streams,
		     change->sac_inbound_streams, list);
		break;
	case SCTP_COMM_LOST:
		tell_lost(change);
		break;
	case SCTP_CANT_STR_ASSOC:
		tell("lost not-up");
		break;
	case SCTP_SHUTDOWN_COMP:
		tell("closed");
		break;
	}
}

static void tell_reset(const struct sctp_stream_reset_event *event)
{
	char list[MAX_STREAMS * 6 + 1] = "";
	size_t count = (event->strreset_length - sizeof *event) / sizeof(uint16_t);
	for (size_t n = 0; n < count && n < MAX_STREAMS; n++)
		sprintf(list + strlen(list), " %u", event->strreset_stream_list[n]);
	tell("streams-reset %s %s%s", event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN ? "incoming" : "outgoing",
	     event->strreset_flags & SCTP_STREAM_RESET_DENIED	? "denied" :
	     event->strreset_flags & SCTP_STREAM_RESET_FAILED ? "failed" :
								"done",
	     list);
}

static const char *outcome(uint16_t flags)
{
	/* The two events share their flags. */
	return flags & SCTP_ASSOC_RESET_DENIED ? "denied" : flags & SCTP_ASSOC_RESET_FAILED ? "failed" : "done";
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

static void tell_notification(const union sctp_notification *what)
{
	switch (what->sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		tell_change(&what->sn_assoc_change);
		break;
	case SCTP_PEER_ADDR_CHANGE:
		tell_address(&what->sn_paddr_change);
		break;
	case SCTP_SHUTDOWN_EVENT:
		tell("peer-shutdown");
		break;
	case SCTP_REMOTE_ERROR:
		tell("error %u", ntohs(what->sn_remote_error.sre_error));
		break;
	case SCTP_SEND_FAILED_EVENT:
		tell("failed %u", ntohl(what->sn_send_failed_event.ssfe_info.snd_ppid));
		break;
	case SCTP_STREAM_RESET_EVENT:
		tell_reset(&what->sn_strreset_event);
		break;
	case SCTP_ASSOC_RESET_EVENT:
		tell("tsns-reset %s", outcome(what->sn_assocreset_event.assocreset_flags));
		break;
	case SCTP_STREAM_CHANGE_EVENT:
		tell("streams-added %u %u %s", what->sn_strchange_event.strchange_outstrms,
		     what->sn_strchange_event.strchange_instrms, outcome(what->sn_strchange_event.strchange_flags));
		break;
	case SCTP_PARTIAL_DELIVERY_EVENT:
		/* The rest of a message of which a part was read does not come. */
		parts[what->sn_pdapi_event.pdapi_stream & 0xffff][0].begun = false;
		parts[what->sn_pdapi_event.pdapi_stream & 0xffff][1].begun = false;
		break;
	}
}

/* Reads one piece; whether there was one. */
static bool take(struct socket *from)
{
	static uint8_t bytes[BUFFER];
	static uint8_t notification[BUFFER];
	static size_t gathered;
	struct sctp_rcvinfo info = { 0 };
	socklen_t length = sizeof info, name = 0;
	unsigned int kind = 0;
	int flags = 0;
	ssize_t size = usrsctp_recvv(from, bytes, sizeof bytes, NULL, &name, &info, &length, &kind, &flags);
	if (size <= 0)
		return false;
	if (!(flags & MSG_NOTIFICATION)) {
		tell_data(bytes, (size_t)size, &info, flags);
		return true;
	}
	if (gathered + (size_t)size <= sizeof notification) {
		memcpy(notification + gathered, bytes, (size_t)size);
		gathered += (size_t)size;
	}
	if (flags & MSG_EOR) {
		tell_notification((const union sctp_notification *)notification);
		gathered = 0;
	}
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

static int set(int option, const void *value, size_t size)
{
	return usrsctp_setsockopt(end(), IPPROTO_SCTP, option, value, (socklen_t)size);
}

static int set_value(int option, uint32_t value)
{
	struct sctp_assoc_value wanted = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = value };
	return set(option, &wanted, sizeof wanted);
}

static int path_parameters(uint32_t flags, uint32_t mtu, uint32_t interval, uint16_t errors)
{
	struct sctp_paddrparams wanted = { .spp_assoc_id = SCTP_FUTURE_ASSOC,
					   .spp_flags = flags,
					   .spp_pathmtu = mtu,
					   .spp_hbinterval = interval,
					   .spp_pathmaxrxt = errors };
	wanted.spp_address.ss_family = AF_INET;
	return set(SCTP_PEER_ADDR_PARAMS, &wanted, sizeof wanted);
}

static int rto(uint32_t initial, uint32_t least, uint32_t most)
{
	struct sctp_rtoinfo wanted = { .srto_initial = initial, .srto_min = least, .srto_max = most };
	struct sctp_initmsg first = { .sinit_max_init_timeo = (uint16_t)most };
	return set(SCTP_RTOINFO, &wanted, sizeof wanted) < 0 ? -1 : set(SCTP_INITMSG, &first, sizeof first);
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

static int streams(uint16_t outgoing, uint16_t incoming)
{
	struct sctp_initmsg wanted = { .sinit_num_ostreams = outgoing, .sinit_max_instreams = incoming };
	return set(SCTP_INITMSG, &wanted, sizeof wanted);
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

static void option(const char *name, const uint32_t *value)
{
	int result = -1;
	errno = EINVAL;
	if (strcmp(name, "streams") == 0)
		result = streams((uint16_t)value[0], (uint16_t)value[1]);
	else if (strcmp(name, "rto") == 0)
		result = rto(value[0], value[1], value[2]);
	else if (strcmp(name, "mtu") == 0)
		result = path_parameters(SPP_PMTUD_DISABLE, value[0], 0, 0);
	else if (strcmp(name, "heartbeat") == 0)
		result = path_parameters(SPP_HB_ENABLE, 0, value[0], 0);
	else if (strcmp(name, "path-max-retrans") == 0)
		result = path_parameters(0, 0, 0, (uint16_t)value[0]);
	else if (strcmp(name, "pf-max-retrans") == 0)
		result = failing_after((uint16_t)value[0]);
	else if (strcmp(name, "tell-potentially-failed") == 0)
		/* No option of usrsctp switches the notification of RFC 7829 section 7.1 on. */
		errno = ENOPROTOOPT;
	else if (strcmp(name, "sack-delay") == 0)
		result = delay_of_sacks(value[0]);
	else if (strcmp(name, "buffers") == 0)
		result = buffers((int)value[0], (int)value[1]);
	else if (strcmp(name, "cmt") == 0)
		result = concurrent_multipath_transfer(value[0] != 0);
	else if (strcmp(name, "partial-reliability") == 0)
		result = set_value(SCTP_PR_SUPPORTED, value[0]);
	else if (strcmp(name, "reconfiguration") == 0)
		result = reconfiguration(value[0] != 0);
	else if (strcmp(name, "interleaving") == 0)
		result = interleaving(value[0] != 0);
	else if (strcmp(name, "nr-sack") == 0)
		result = set_value(SCTP_NRSACK_SUPPORTED, value[0]);
	else if (strcmp(name, "zero-checksum") == 0)
		result = set_value(OPTION_ZERO_CHECKSUM, value[0]);
	else if (strcmp(name, "addresses") == 0)
		result = set_value(SCTP_ASCONF_SUPPORTED, value[0]);
	else if (strcmp(name, "authentication") == 0)
		result = set_value(SCTP_AUTH_SUPPORTED, value[0]);
	char call[64];
	snprintf(call, sizeof call, "usrsctp_setsockopt, %s", name);
	answer(call, result);
}

/* A shared key; and DATA counts only with it. */
static void shared_key(uint16_t number, const char *text)
{
	uint8_t room[sizeof(struct sctp_authkey) + MAX_LINE];
	struct sctp_authkey *key = (struct sctp_authkey *)room;
	struct sctp_authkeyid active = { .scact_keynumber = number };
	struct sctp_authchunk data = { .sauth_chunk = SCTP_DATA };
	*key = (struct sctp_authkey){ .sca_keynumber = number, .sca_keylength = (uint16_t)strlen(text) };
	memcpy(key->sca_key, text, strlen(text));
	int result = set(SCTP_AUTH_KEY, key, sizeof *key + strlen(text));
	result = result < 0 ? result : set(SCTP_AUTH_ACTIVE_KEY, &active, sizeof active);
	result = result < 0 ? result : set(SCTP_AUTH_CHUNK, &data, sizeof data);
	answer("usrsctp_setsockopt, SCTP_AUTH_KEY", result);
}

static int subscribe(void)
{
	static const uint16_t wanted[] = { SCTP_ASSOC_CHANGE,	    SCTP_PEER_ADDR_CHANGE,  SCTP_REMOTE_ERROR,
					   SCTP_SHUTDOWN_EVENT,	    SCTP_SEND_FAILED_EVENT, SCTP_STREAM_RESET_EVENT,
					   SCTP_ASSOC_RESET_EVENT,  SCTP_STREAM_CHANGE_EVENT,
					   SCTP_PARTIAL_DELIVERY_EVENT };
	struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1 };
	for (size_t n = 0; n < sizeof wanted / sizeof *wanted; n++) {
		event.se_type = wanted[n];
		if (set(SCTP_EVENT, &event, sizeof event) < 0)
			return -1;
	}
	return 0;
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

static int addresses(char **words, int count, struct sockaddr_in *list)
{
	int number = 0;
	for (int n = 1; n < count && number < MAX_ADDRESSES; n++, number++) {
		list[number] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[0])) };
		inet_pton(AF_INET, words[n], &list[number].sin_addr);
	}
	return number;
}

/* Adds addresses, or deletes some; of an association that is up, usrsctp tells the peer with an ASCONF. */
static void change_addresses(char **words, int count, int flags)
{
	struct sockaddr_in list[MAX_ADDRESSES];
	int number = addresses(words, count, list);
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

static void reset_streams(char **words, int count)
{
	uint8_t room[sizeof(struct sctp_reset_streams) + MAX_WORDS * sizeof(uint16_t)];
	struct sctp_reset_streams *wanted = (struct sctp_reset_streams *)room;
	bool outgoing = strcmp(words[0], "outgoing") == 0;
	*wanted = (struct sctp_reset_streams){ .srs_assoc_id = SCTP_FUTURE_ASSOC,
					       .srs_flags = outgoing ? SCTP_STREAM_RESET_OUTGOING :
								       SCTP_STREAM_RESET_INCOMING,
					       .srs_number_streams = (uint16_t)(count - 1) };
	for (int n = 1; n < count; n++)
		wanted->srs_stream_list[n - 1] = (uint16_t)atoi(words[n]);
	size_t size = sizeof *wanted + (size_t)(count - 1) * sizeof(uint16_t);
	answer("usrsctp_setsockopt, SCTP_RESET_STREAMS", set(SCTP_RESET_STREAMS, wanted, size));
}

static void add_streams(uint16_t outgoing, uint16_t incoming)
{
	struct sctp_add_streams wanted = { .sas_outstrms = outgoing, .sas_instrms = incoming };
	answer("usrsctp_setsockopt, SCTP_ADD_STREAMS", set(SCTP_ADD_STREAMS, &wanted, sizeof wanted));
}

static void reset_tsns(void)
{
	sctp_assoc_t all = SCTP_FUTURE_ASSOC;
	answer("usrsctp_setsockopt, SCTP_RESET_ASSOC", set(SCTP_RESET_ASSOC, &all, sizeof all));
}

static void begin_to_listen(void)
{
	usrsctp_set_upcall(listener, wake, NULL);
	answer("usrsctp_listen", usrsctp_listen(listener, 1));
}

static void obey(char **words, int count)
{
	const char *command = words[0];
	uint32_t number[3] = { 0 };
	for (int n = 2; n < count && n < 5; n++)
		number[n - 2] = (uint32_t)strtoul(words[n], NULL, 10);
	if (strcmp(command, "start") == 0 && count == 3)
		start((uint16_t)atoi(words[1]), (uint16_t)atoi(words[2]));
	else if (strcmp(command, "option") == 0 && count >= 3)
		option(words[1], number);
	else if (strcmp(command, "key") == 0 && count == 3)
		shared_key((uint16_t)atoi(words[1]), words[2]);
	else if (strcmp(command, "bind") == 0 && count >= 3)
		change_addresses(words + 1, count - 1, SCTP_BINDX_ADD_ADDR);
	else if (strcmp(command, "unbind") == 0 && count >= 3)
		change_addresses(words + 1, count - 1, SCTP_BINDX_REM_ADDR);
	else if (strcmp(command, "listen") == 0)
		begin_to_listen();
	else if (strcmp(command, "connect") == 0 && count >= 3)
		connect_to(words + 1, count - 1);
	else if (strcmp(command, "send") == 0 && count == 7)
		send_message(words + 1);
	else if (strcmp(command, "reset") == 0 && count >= 2)
		reset_streams(words + 1, count - 1);
	else if (strcmp(command, "add") == 0 && count == 3)
		add_streams((uint16_t)atoi(words[1]), (uint16_t)atoi(words[2]));
	else if (strcmp(command, "reset-tsns") == 0)
		reset_tsns();
	else if (strcmp(command, "shutdown") == 0)
		answer("usrsctp_shutdown", usrsctp_shutdown(end(), SHUT_WR));
	else if (strcmp(command, "abort") == 0 && count == 2)
		abort_for(words[1]);
	else
		tell("refused %s: not a command, or too few words", command);
}

int main(void)
{
	static char line[MAX_LINE];
	pthread_t reader;
	if (pthread_create(&reader, NULL, listen_and_read, NULL) != 0)
		return 1;
	while (fgets(line, sizeof line, stdin) != NULL) {
		char *words[MAX_WORDS], *state = NULL;
		int count = 0;
		for (char *word = strtok_r(line, " \n", &state); word != NULL && count < MAX_WORDS;
		     word = strtok_r(NULL, " \n", &state))
			words[count++] = word;
		if (count == 0)
			continue;
		pthread_mutex_lock(&lock);
		obey(words, count);
		pthread_mutex_unlock(&lock);
	}
	/* Standard input has ended: so has the test. What is still under way is nobody's any more. */
	_Exit(0);
}
