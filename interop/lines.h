/*
 * The protocol of lines that every peer of `interop` speaks, whatever its stack is called by. A peer includes this after its
 * stack's header, and has the functions that are declared first.
 *
 * Every line on standard input is a command; each is answered by one line: `ok`, `refused CALL: WHY`, or `busy`, which
 * is to say that it may work later. What happens to the association is said at any time, a line each, by the words in
 * `tell_notification` and `tell_data`.
 *
 *   start UDP REMOTE                  UDP ports here and there; to be said first
 *   option NAME NUMBER...             see `option`
 *   key ID TEXT                       a shared key, with which DATA has to be authenticated
 *   bind PORT ADDRESS...              SCTP port and addresses; of an association that is up, more of them
 *   unbind PORT ADDRESS...            deletes addresses
 *   listen | connect PORT ADDRESS...
 *   send STREAM PPID SIZE FLAGS POLICY VALUE
 *   reset FLAGS STREAM... | add OUT IN | reset-tsns | shutdown | abort REASON
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_WORDS 64
#define MAX_LINE 4096
#define MAX_ADDRESSES 8
#define MAX_STREAMS 256
#define BUFFER (1 << 17)
#define OPTION_CMT 0x00001200

/* ---- What a peer has ---- */

/* A line. */
static void tell(const char *format, ...);
static void tell_up(const char *what, const struct sctp_assoc_change *change);
static void tell_lost(const struct sctp_assoc_change *change);
static void tell_added(const struct sctp_stream_change_event *event);
static void tell_address(const struct sctp_paddr_change *change);

/* The association of the options that ask for one. */
static sctp_assoc_t asked(void);
/* setsockopt() of IPPROTO_SCTP. */
static int set(int option, const void *value, size_t size);
static int buffers(int sending, int receiving);
static int reconfiguration(bool on);
static int interleaving(bool on);
static int failing_after(uint16_t errors);
static int delay_of_sacks(uint32_t milliseconds);
/* The options that every stack has in its own way. */
static int own_option(const char *name, const uint32_t *value);

static void start(uint16_t udp, uint16_t remote);
static void change_addresses(char **words, int count, bool add);
static void begin_to_listen(void);
static void connect_to(char **words, int count);
static void send_message(char **words);
static void shut_down(void);
static void abort_for(const char *reason);
/* Whether it is a command of this peer alone; then it is obeyed. */
static bool own_command(const char *command);

/* ---- What arrives ---- */

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
	for (size_t n = 0; n < count && n < MAX_STREAMS; n++)
		sprintf(list + strlen(list), " %u", event->strreset_stream_list[n]);
	tell("streams-reset %s %s%s", event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN ? "incoming" : "outgoing",
	     outcome(event->strreset_flags), list);
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

/* A piece of a notification; a whole one is told. */
static void gather(const uint8_t *bytes, size_t size, bool last)
{
	static uint8_t notification[BUFFER];
	static size_t gathered;
	if (gathered + size <= sizeof notification) {
		memcpy(notification + gathered, bytes, size);
		gathered += size;
	}
	if (last) {
		tell_notification((const union sctp_notification *)notification);
		gathered = 0;
	}
}

/* ---- What is asked ---- */

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

static int streams(uint16_t outgoing, uint16_t incoming)
{
	struct sctp_initmsg wanted = { .sinit_num_ostreams = outgoing, .sinit_max_instreams = incoming };
	return set(SCTP_INITMSG, &wanted, sizeof wanted);
}

static void option(const char *name, const uint32_t *value)
{
	int result = -1;
	errno = EINVAL;
	if (strcmp(name, "streams") == 0)
		result = streams((uint16_t)value[0], (uint16_t)value[1]);
	else if (strcmp(name, "rto") == 0)
		result = rto(value[0], value[1], value[2]);
	else if (strcmp(name, "heartbeat") == 0)
		result = path_parameters(SPP_HB_ENABLE, 0, value[0], 0);
	else if (strcmp(name, "path-max-retrans") == 0)
		result = path_parameters(0, 0, 0, (uint16_t)value[0]);
	else if (strcmp(name, "pf-max-retrans") == 0)
		result = failing_after((uint16_t)value[0]);
	else if (strcmp(name, "sack-delay") == 0)
		result = delay_of_sacks(value[0]);
	else if (strcmp(name, "buffers") == 0)
		result = buffers((int)value[0], (int)value[1]);
	else if (strcmp(name, "partial-reliability") == 0)
		result = set_value(SCTP_PR_SUPPORTED, value[0]);
	else if (strcmp(name, "reconfiguration") == 0)
		result = reconfiguration(value[0] != 0);
	else if (strcmp(name, "interleaving") == 0)
		result = interleaving(value[0] != 0);
	else if (strcmp(name, "addresses") == 0)
		result = set_value(SCTP_ASCONF_SUPPORTED, value[0]);
	else if (strcmp(name, "authentication") == 0)
		result = set_value(SCTP_AUTH_SUPPORTED, value[0]);
	else
		result = own_option(name, value);
	char call[64];
	snprintf(call, sizeof call, CALLS "setsockopt, %s", name);
	answer(call, result);
}

/* A shared key; and DATA counts only with it. */
static void shared_key(uint16_t number, const char *text)
{
	uint8_t room[sizeof(struct sctp_authkey) + MAX_LINE];
	struct sctp_authkey *key = (struct sctp_authkey *)room;
	struct sctp_authkeyid active = { .scact_keynumber = number };
	struct sctp_authchunk data = { .sauth_chunk = 0 /* DATA */ };
	*key = (struct sctp_authkey){ .sca_keynumber = number, .sca_keylength = (uint16_t)strlen(text) };
	memcpy(key->sca_key, text, strlen(text));
	int result = set(SCTP_AUTH_KEY, key, sizeof *key + strlen(text));
	result = result < 0 ? result : set(SCTP_AUTH_ACTIVE_KEY, &active, sizeof active);
	result = result < 0 ? result : set(SCTP_AUTH_CHUNK, &data, sizeof data);
	answer(CALLS "setsockopt, SCTP_AUTH_KEY", result);
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

static int addresses(char **words, int count, struct sockaddr_in *list)
{
	int number = 0;
	for (int n = 1; n < count && number < MAX_ADDRESSES; n++, number++) {
		list[number] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[0])) };
		inet_pton(AF_INET, words[n], &list[number].sin_addr);
	}
	return number;
}

static void reset_streams(char **words, int count)
{
	uint8_t room[sizeof(struct sctp_reset_streams) + MAX_WORDS * sizeof(uint16_t)];
	struct sctp_reset_streams *wanted = (struct sctp_reset_streams *)room;
	bool outgoing = strcmp(words[0], "outgoing") == 0;
	*wanted = (struct sctp_reset_streams){ .srs_assoc_id = asked(),
					       .srs_flags = outgoing ? SCTP_STREAM_RESET_OUTGOING :
								       SCTP_STREAM_RESET_INCOMING,
					       .srs_number_streams = (uint16_t)(count - 1) };
	for (int n = 1; n < count; n++)
		wanted->srs_stream_list[n - 1] = (uint16_t)atoi(words[n]);
	size_t size = sizeof *wanted + (size_t)(count - 1) * sizeof(uint16_t);
	answer(CALLS "setsockopt, SCTP_RESET_STREAMS", set(SCTP_RESET_STREAMS, wanted, size));
}

static void add_streams(uint16_t outgoing, uint16_t incoming)
{
	struct sctp_add_streams wanted = { .sas_assoc_id = asked(), .sas_outstrms = outgoing,
					   .sas_instrms = incoming };
	answer(CALLS "setsockopt, SCTP_ADD_STREAMS", set(SCTP_ADD_STREAMS, &wanted, sizeof wanted));
}

static void reset_tsns(void)
{
	sctp_assoc_t wanted = asked();
	answer(CALLS "setsockopt, SCTP_RESET_ASSOC", set(SCTP_RESET_ASSOC, &wanted, sizeof wanted));
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
		change_addresses(words + 1, count - 1, true);
	else if (strcmp(command, "unbind") == 0 && count >= 3)
		change_addresses(words + 1, count - 1, false);
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
		shut_down();
	else if (strcmp(command, "abort") == 0 && count == 2)
		abort_for(words[1]);
	else if (!own_command(command))
		tell("refused %s: not a command, or too few words", command);
}

/* Divides a line into words, and obeys it. */
static void obey_line(char *line)
{
	char *words[MAX_WORDS], *state = NULL;
	int count = 0;
	for (char *word = strtok_r(line, " \r\n", &state); word != NULL && count < MAX_WORDS;
	     word = strtok_r(NULL, " \r\n", &state))
		words[count++] = word;
	if (count > 0)
		obey(words, count);
}
