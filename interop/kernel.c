/*
 * The Linux kernel's SCTP as a peer: commands on standard input, one a line; what happens on standard output, one a
 * line that begins with '@', because the console of the machine that this runs in says other things too. The commands
 * and lines are those of peer.c; `start` begins anew, and aborts what there was.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sctp.h>

#define MAX_WORDS 64
#define MAX_LINE 4096
#define MAX_ADDRESSES 8
#define BUFFER (1 << 17)
/* Zero Checksum (RFC 9653) has no option in this kernel; the number is FreeBSD's, as in peer.c. */
#define OPTION_CMT 0x00001200
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

static void tell_change(const struct sctp_assoc_change *change)
{
	switch (change->sac_state) {
	case SCTP_COMM_UP:
		tell_up("up", change);
		break;
	case SCTP_RESTART:
		tell_up("restart", change);
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

/* The events of RFC 6525 share their flags. */
static const char *outcome(uint16_t flags)
{
	return flags & SCTP_STREAM_RESET_DENIED ? "denied" : flags & SCTP_STREAM_RESET_FAILED ? "failed" : "done";
}

static void tell_reset(const struct sctp_stream_reset_event *event)
{
	char list[MAX_LINE] = "";
	size_t count = (event->strreset_length - sizeof *event) / sizeof(uint16_t);
	for (size_t n = 0; n < count && n < 256; n++)
		sprintf(list + strlen(list), " %u", event->strreset_stream_list[n]);
	tell("streams-reset %s %s%s", event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN ? "incoming" : "outgoing",
	     outcome(event->strreset_flags), list);
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
		tell_added(&what->sn_strchange_event);
		break;
	case SCTP_PARTIAL_DELIVERY_EVENT:
		/* The rest of a message of which a part was read does not come. */
		parts[what->sn_pdapi_event.pdapi_stream & 0xffff][0].begun = false;
		parts[what->sn_pdapi_event.pdapi_stream & 0xffff][1].begun = false;
		break;
	}
}

/* Reads one piece; whether there was one. */
static bool take(void)
{
	static uint8_t bytes[BUFFER];
	static uint8_t notification[BUFFER];
	static size_t gathered;
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
	if (!(message.msg_flags & MSG_NOTIFICATION)) {
		tell_data(bytes, (size_t)size, &info, message.msg_flags);
		return true;
	}
	if (gathered + (size_t)size <= sizeof notification) {
		memcpy(notification + gathered, bytes, (size_t)size);
		gathered += (size_t)size;
	}
	if (message.msg_flags & MSG_EOR) {
		tell_notification((const union sctp_notification *)notification);
		gathered = 0;
	}
	return true;
}

/* ---- What is asked ---- */

static int set(int option, const void *value, size_t size)
{
	return setsockopt(end, IPPROTO_SCTP, option, value, (socklen_t)size);
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

static int streams(uint16_t outgoing, uint16_t incoming)
{
	struct sctp_initmsg wanted = { .sinit_num_ostreams = outgoing, .sinit_max_instreams = incoming };
	return set(SCTP_INITMSG, &wanted, sizeof wanted);
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

static void option(const char *name, const uint32_t *value)
{
	int result = -1;
	errno = EINVAL;
	if (strcmp(name, "streams") == 0)
		result = streams((uint16_t)value[0], (uint16_t)value[1]);
	else if (strcmp(name, "rto") == 0)
		result = rto(value[0], value[1], value[2]);
	else if (strcmp(name, "mtu") == 0)
		/* The interfaces have it. */
		result = 0;
	else if (strcmp(name, "heartbeat") == 0)
		result = path_parameters(SPP_HB_ENABLE, 0, value[0], 0);
	else if (strcmp(name, "path-max-retrans") == 0)
		result = path_parameters(0, 0, 0, (uint16_t)value[0]);
	else if (strcmp(name, "pf-max-retrans") == 0)
		result = failing_after((uint16_t)value[0]);
	else if (strcmp(name, "tell-potentially-failed") == 0)
		result = set_value(SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, value[0] ? TELL_POTENTIALLY_FAILED : 0);
	else if (strcmp(name, "sack-delay") == 0)
		result = delay_of_sacks(value[0]);
	else if (strcmp(name, "buffers") == 0)
		result = buffers((int)value[0], (int)value[1]);
	else if (strcmp(name, "cmt") == 0)
		result = set_value(OPTION_CMT, value[0]);
	else if (strcmp(name, "partial-reliability") == 0)
		result = set_value(SCTP_PR_SUPPORTED, value[0]);
	else if (strcmp(name, "reconfiguration") == 0)
		result = reconfiguration(value[0] != 0);
	else if (strcmp(name, "interleaving") == 0)
		result = interleaving(value[0] != 0);
	else if (strcmp(name, "nr-sack") == 0)
		/* Linux has no NR-SACK. */
		errno = ENOPROTOOPT;
	else if (strcmp(name, "zero-checksum") == 0)
		result = set_value(OPTION_ZERO_CHECKSUM, value[0]);
	else if (strcmp(name, "addresses") == 0)
		result = set_value(SCTP_ASCONF_SUPPORTED, value[0]);
	else if (strcmp(name, "authentication") == 0)
		result = set_value(SCTP_AUTH_SUPPORTED, value[0]);
	char call[64];
	snprintf(call, sizeof call, "setsockopt, %s", name);
	answer(call, result);
}

/* A shared key; and DATA counts only with it. */
static void shared_key(uint16_t number, const char *text)
{
	uint8_t room[sizeof(struct sctp_authkey) + MAX_LINE];
	struct sctp_authkey *key = (struct sctp_authkey *)room;
	struct sctp_authkeyid active = { .scact_keynumber = number };
	struct sctp_authchunk data = { .sauth_chunk = 0 };
	*key = (struct sctp_authkey){ .sca_keynumber = number, .sca_keylength = (uint16_t)strlen(text) };
	memcpy(key->sca_key, text, strlen(text));
	int result = set(SCTP_AUTH_KEY, key, sizeof *key + strlen(text));
	result = result < 0 ? result : set(SCTP_AUTH_ACTIVE_KEY, &active, sizeof active);
	result = result < 0 ? result : set(SCTP_AUTH_CHUNK, &data, sizeof data);
	answer("setsockopt, SCTP_AUTH_KEY", result);
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

static int addresses(char **words, int count, struct sockaddr_in *list)
{
	int number = 0;
	for (int n = 1; n < count && number < MAX_ADDRESSES; n++, number++) {
		list[number] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[0])) };
		inet_pton(AF_INET, words[n], &list[number].sin_addr);
	}
	return number;
}

/* Adds addresses, or deletes some; of an association that is up, the kernel tells the peer with an ASCONF. */
static void change_addresses(char **words, int count, int option)
{
	struct sockaddr_in list[MAX_ADDRESSES];
	int number = addresses(words, count, list);
	answer("bindx", set(option, list, (size_t)number * sizeof *list));
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

static void reset_streams(char **words, int count)
{
	uint8_t room[sizeof(struct sctp_reset_streams) + MAX_WORDS * sizeof(uint16_t)];
	struct sctp_reset_streams *wanted = (struct sctp_reset_streams *)room;
	bool outgoing = strcmp(words[0], "outgoing") == 0;
	*wanted = (struct sctp_reset_streams){ .srs_assoc_id = association,
					       .srs_flags = outgoing ? SCTP_STREAM_RESET_OUTGOING :
								       SCTP_STREAM_RESET_INCOMING,
					       .srs_number_streams = (uint16_t)(count - 1) };
	for (int n = 1; n < count; n++)
		wanted->srs_stream_list[n - 1] = (uint16_t)atoi(words[n]);
	size_t size = sizeof *wanted + (size_t)(count - 1) * sizeof(uint16_t);
	answer("setsockopt, SCTP_RESET_STREAMS", set(SCTP_RESET_STREAMS, wanted, size));
}

static void add_streams(uint16_t outgoing, uint16_t incoming)
{
	struct sctp_add_streams wanted = { .sas_assoc_id = association, .sas_outstrms = outgoing,
					   .sas_instrms = incoming };
	answer("setsockopt, SCTP_ADD_STREAMS", set(SCTP_ADD_STREAMS, &wanted, sizeof wanted));
}

static void reset_tsns(void)
{
	sctp_assoc_t wanted = association;
	answer("setsockopt, SCTP_RESET_ASSOC", set(SCTP_RESET_ASSOC, &wanted, sizeof wanted));
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
		change_addresses(words + 1, count - 1, SCTP_SOCKOPT_BINDX_ADD);
	else if (strcmp(command, "unbind") == 0 && count >= 3)
		change_addresses(words + 1, count - 1, SCTP_SOCKOPT_BINDX_REM);
	else if (strcmp(command, "listen") == 0)
		answer("listen", listen(end, 1));
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
		finish(SCTP_EOF, "");
	else if (strcmp(command, "abort") == 0 && count == 2)
		finish(SCTP_ABORT, words[1]);
	else if (strcmp(command, "forget") == 0) {
		forget();
		tell("ok");
	} else if (strcmp(command, "quit") == 0)
		exit(0);
	else
		tell("refused %s: not a command, or too few words", command);
}

/* Obeys every whole line that was read; what is left of the last one stays. */
static size_t obey_lines(char *text, size_t length)
{
	char *rest = text, *newline;
	while ((newline = memchr(rest, '\n', length - (size_t)(rest - text))) != NULL) {
		char *words[MAX_WORDS], *state = NULL;
		int count = 0;
		*newline = '\0';
		for (char *word = strtok_r(rest, " \r", &state); word != NULL && count < MAX_WORDS;
		     word = strtok_r(NULL, " \r", &state))
			words[count++] = word;
		if (count > 0)
			obey(words, count);
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
