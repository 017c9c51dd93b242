/*
 * Each mistake is a list of edits: in this script, these words become those. A script without the
 * words is an error, so that no mistake is forgotten when a script changes.
 */
#include "fake_mutations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum fake_mutation fake_mutation;
const char *const fake_mutation_names[FAKE_MUTATIONS] = {
    [FAKE_AS_IT_SHOULD_BE] = "none",
    [FAKE_COMMIT_ANYWHERE] = "commit anywhere",
    [FAKE_COMMIT_LOWERS] = "commit lowers",
    [FAKE_NO_TOMBS] = "no tombstones",
    [FAKE_OLD_CALLS] = "copies of earlier calls run",
    [FAKE_NO_DEADLINE] = "no deadline",
    [FAKE_NO_QUARANTINE] = "no quarantine",
    [FAKE_RELEASE_ANY] = "release frees any hold",
    [FAKE_RENEW_CREATES] = "renew creates",
    [FAKE_PLANT_ANYWHERE] = "plant overwrites",
    [FAKE_REPEAT_COUNTS] = "a repeat counts",
    [FAKE_SEQ_IGNORED] = "sequence of counts ignored",
    [FAKE_NO_FLOOR] = "no floor for tokens",
    [FAKE_SCRIPTS_SURVIVE] = "scripts survive a restart",
    [FAKE_TAKEOVER_KEEPS_TOKEN] = "take-over keeps the token",
    [FAKE_LATE_COPIES] = "late copies of older operations count",
    [FAKE_JUMPS_UNSEEN] = "clocks that jump go unseen",
    [FAKE_SETTINGS_UNSEEN] = "scripts do not compare the settings",
    [FAKE_VETO_UNHEARD] = "a refusal for settings is no veto",
    [FAKE_READERS_UNSEEN] = "a writer does not see readers",
    [FAKE_WRITER_UNSEEN] = "a reader does not see a writer",
    [FAKE_PERMIT_TWICE] = "a permit given twice",
    [FAKE_GUESS_UNSEEN] = "an exchange over another state",
    [FAKE_ABSENT_IS_MET] = "an exchange over nothing",
    [FAKE_NUMBER_UNSEEN] = "an exchange over another version",
    [FAKE_BACK_ANYWHERE] = "put back where nothing was done",
    [FAKE_FLOOR_IS_HOLD] = "holds told apart by their floor",
    [FAKE_HEALS_ANY] = "made whole over another hold",
    [FAKE_GROUP_IN_PARTS] = "a group taken in parts",
    [FAKE_WORDS_FOR_EVER] = "words of Sentinels count for ever",
    [FAKE_PROMOTED_IS_RESTARTED] = "a promoted master is a restarted one",
    [FAKE_PLANTED_BEFORE_NAMED] = "planted counts while the old master may",
    [FAKE_QUORUM_OF_CONNECTED] = "a majority of the connected",
    [FAKE_NO_COMMIT] = "no second round for the token",
    [FAKE_VALID_FROM_ANSWER] = "validity counted from the answer",
    [FAKE_TOLD_LATE] = "told when it is over",
    [FAKE_IDS_TWICE] = "operation ids used twice",
    [FAKE_NO_UNDO] = "nothing is undone",
    [FAKE_PLANTED_COUNTS] = "planted is a vote at once",
    [FAKE_PLANT_STAYS] = "an old copy keeps its time",
    [FAKE_COPY_WINS] = "an old copy beats what is remembered",
    [FAKE_OLDER_WINS] = "the higher token is ignored",
    [FAKE_PLANT_SHORTENS] = "replacing shortens",
    [FAKE_NO_GRAVES] = "what was ended for others is forgotten",
    [FAKE_FORMER_LIFE] = "votes of a former life count",
    [FAKE_REPLY_OF_GUESS] = "a reply made of the guess",
    [FAKE_PUBLISH_FIRST] = "published before it is confirmed",
    [FAKE_NEVER_PUT_BACK] = "what was refused is not put back",
    [FAKE_LATEST_IS_TRUTH] = "the latest version is the truth",
    [FAKE_REFUSED_BY_ANSWERS] = "refused while a majority may have it",
    [FAKE_ONE_UNSIGNED] = "one signature missing",
    [FAKE_NO_HIGHEST] = "signed without the highest token",
    [FAKE_NAME_TWICE] = "two processes of one name",
    [FAKE_SIGNS_FIRST] = "signed before all is planted",
    [FAKE_SHORT_MEMORY] = "signed with a short memory",
    [FAKE_LIVES_FORGOTTEN] = "a run that comes back is the one it was",
};

static const char tomb[] = "redis.call('SET', gone_key(key, op), how, 'PX', ms, ...)";
static const char age[] = "if broker ~= nil and broker == holder then";
static const char late[] = "now - ARGV[1] > 0 then";
static const char others[] = "elseif mark[2] ~= SETTINGS then";
static const char repeated[] = "if CALL - (master[2] or 0) < 0 then";

static const struct edit {
    enum fake_mutation mutation;
    enum script script;
    const char *from, *to;
} edits[] = {
    {FAKE_COMMIT_ANYWHERE, SCRIPT_COMMIT,
     "local hold, code, value = hold_key(KEYS[i], part), COMMIT_MISSING, 0",
     "local hold, code, value = hold_key(KEYS[i], part), COMMIT_WRITTEN, tonumber(token) "
     "count_to(counter, math.max(value, last_token(counter)))"},
    {FAKE_COMMIT_LOWERS, SCRIPT_COMMIT,
     "own > token and COMMIT_LARGER or COMMIT_WRITTEN, math.max(own, token)",
     "COMMIT_WRITTEN, token"},
    {FAKE_COMMIT_LOWERS, SCRIPT_COMMIT, "if own < token then", "if own ~= token then"},
    {FAKE_NO_TOMBS, SCRIPT_ACQUIRE, tomb, ""},
    {FAKE_NO_TOMBS, SCRIPT_TAKEOVER, tomb, ""},
    {FAKE_NO_TOMBS, SCRIPT_RELEASE, tomb, ""},
    {FAKE_OLD_CALLS, SCRIPT_ACQUIRE, repeated, "if false then"},
    {FAKE_OLD_CALLS, SCRIPT_COMMIT, repeated, "if false then"},
    {FAKE_OLD_CALLS, SCRIPT_TAKEOVER, repeated, "if false then"},
    {FAKE_OLD_CALLS, SCRIPT_RENEW, repeated, "if false then"},
    {FAKE_OLD_CALLS, SCRIPT_PLANT, repeated, "if false then"},
    {FAKE_NO_DEADLINE, SCRIPT_ACQUIRE, late, "false then"},
    {FAKE_NO_DEADLINE, SCRIPT_COMMIT, late, "false then"},
    {FAKE_NO_DEADLINE, SCRIPT_TAKEOVER, late, "false then"},
    {FAKE_NO_DEADLINE, SCRIPT_RENEW, late, "false then"},
    {FAKE_NO_DEADLINE, SCRIPT_PLANT, late, "false then"},
    {FAKE_NO_QUARANTINE, SCRIPT_JOIN, "local ends = now + QUARANTINE", "local ends = now"},
    {FAKE_RELEASE_ANY, SCRIPT_RELEASE, "match(text, OPERATION) == ARGV[HEAD + i]",
     "match(text, OPERATION)"},
    {FAKE_RELEASE_ANY, SCRIPT_RELEASE, "if text and text:match(OP) == op then",
     "if text and text:match(OP) then"},
    {FAKE_RENEW_CREATES, SCRIPT_RENEW, "return RENEW_MISSING",
     "if lease ~= '0' then call('SET', hold, hold_text(op, '1', count or '1', seq or '1', lease, "
     "'0', '0', '?'), 'PX', lease) return RENEW_HELD end return RENEW_MISSING"},
    {FAKE_PLANT_ANYWHERE, SCRIPT_PLANT, "if not held and not is_taken(key, owner, part) and",
     "if (not held or held:match(OP)) and"},
    {FAKE_REPEAT_COUNTS, SCRIPT_ACQUIRE, "elseif held and held.op == w.op then",
     "elseif false then"},
    {FAKE_REPEAT_COUNTS, SCRIPT_ACQUIRE, "elseif held and held.op ~= w.prev then",
     "elseif held and held.op ~= w.prev and held.op ~= w.op then"},
    {FAKE_SEQ_IGNORED, SCRIPT_RENEW,
     "local newer = seq and held_seq ~= seq and is_later(seq, held_seq)", "local newer = seq"},
    {FAKE_NO_FLOOR, SCRIPT_ACQUIRE, "math.max(last[i] or 0, base)", "last[i] or 0"},
    {FAKE_NO_FLOOR, SCRIPT_ACQUIRE, "elseif LOWEST - base <= 0 then", "else"},
    {FAKE_NO_FLOOR, SCRIPT_ACQUIRE, "above = above and LOWEST", "above = nil and LOWEST"},
    {FAKE_NO_FLOOR, SCRIPT_ACQUIRE, "math.max(0, last_of[counter_of[i]] + 1 - hold:match(TOKEN))",
     "last_of[counter_of[i]] + 1 - hold:match(TOKEN)"},
    {FAKE_NO_FLOOR, SCRIPT_ACQUIRE, "if by > 0 then", "if by ~= 0 then"},
    {FAKE_NO_FLOOR, SCRIPT_ACTIVATE, "if BASE > (tonumber(base) or 0) then", "if false then"},
    {FAKE_TAKEOVER_KEEPS_TOKEN, SCRIPT_TAKEOVER,
     "math.max(last_token(counter) + 1, base + 1, tonumber(floor))", "tonumber(held.token)"},
    {FAKE_LATE_COPIES, SCRIPT_ACQUIRE, age, "if false then"},
    {FAKE_LATE_COPIES, SCRIPT_TAKEOVER, age, "if false then"},
    {FAKE_SETTINGS_UNSEEN, SCRIPT_ACQUIRE, others, "elseif false then"},
    {FAKE_SETTINGS_UNSEEN, SCRIPT_COMMIT, others, "elseif false then"},
    {FAKE_SETTINGS_UNSEEN, SCRIPT_TAKEOVER, others, "elseif false then"},
    {FAKE_SETTINGS_UNSEEN, SCRIPT_RENEW, others, "elseif false then"},
    {FAKE_SETTINGS_UNSEEN, SCRIPT_PLANT, others, "elseif false then"},
    {FAKE_READERS_UNSEEN, SCRIPT_ACQUIRE, "return shared_by(w)", "return"},
    {FAKE_WRITER_UNSEEN, SCRIPT_ACQUIRE,
     "if alone and alone.op ~= w.prev and alone.owner ~= w.owner then", "if false then"},
    {FAKE_PERMIT_TWICE, SCRIPT_ACQUIRE, "if not held or replaces then", "if true then"},
    {FAKE_LIVES_FORGOTTEN, SCRIPT_JOIN, "number(heard) >= number(own) and heard ~= own", "false"},
    {FAKE_ONE_UNSIGNED, SCRIPT_ROLL, "if not missing[1] and not veto then",
     "if #missing <= 1 and not veto then"},
    {FAKE_NO_HIGHEST, SCRIPT_ROLL, "highest = math.max(highest, tonumber(token or 0))", ""},
    {FAKE_NAME_TWICE, SCRIPT_ROLL, "    shut(before)\n", ""},
    {FAKE_NAME_TWICE, SCRIPT_ROLL, "if state ~= 'active' then\n        veto",
     "if false then\n        veto"},
    {FAKE_PLANTED_BEFORE_NAMED, SCRIPT_RENEW, "claim_ms and claim_ms + named_ms", "claim_ms"},
    {FAKE_PLANTED_COUNTS, SCRIPT_RENEW, "return counts and RENEW_PLANTED or RENEW_EARLY",
     "return RENEW_PLANTED"},
    {FAKE_PLANT_STAYS, SCRIPT_REPLANT, "local rivals, longest, highest = find_rivals(",
     "if (look(key) or ''):match(OP) == h.op then return REPLANT_THERE end "
     "local rivals, longest, highest = find_rivals("},
    {FAKE_PLANT_STAYS, SCRIPT_REPLANT, "        clear(key)\n", "\n"},
    {FAKE_COPY_WINS, SCRIPT_REPLANT, "        clear(key)\n", "\n"},
    {FAKE_COPY_WINS, SCRIPT_REPLANT, "if call('HGET', PLANTED, hold) == held.op then",
     "if true then"},
    {FAKE_OLDER_WINS, SCRIPT_REPLANT, "if tonumber(h.token) <= tonumber(over or 0) then",
     "if false then"},
    {FAKE_OLDER_WINS, SCRIPT_REPLANT, "if highest > tonumber(h.token) then", "if false then"},
    {FAKE_PLANT_SHORTENS, SCRIPT_REPLANT, "math.max(tonumber(lease), longest)", "lease"},
    {FAKE_GROUP_IN_PARTS, SCRIPT_ACQUIRE, "if not may_take or", "if"},
    {FAKE_GUESS_UNSEEN, SCRIPT_EXCHANGE, "held and find(held, wish, 1, true) == 1", "held"},
    {FAKE_GUESS_UNSEEN, SCRIPT_EXCHANGE, "held and find(held, asks or wish, 1, true) == 1", "held"},
    {FAKE_GUESS_UNSEEN, SCRIPT_EXCHANGE, "lease and held and find(held, asks, 1, true) == 1",
     "held"},
    {FAKE_GUESS_UNSEEN, SCRIPT_EXCHANGE, "return (held and held.op or 'free') ~= x.expect",
     "return (held ~= nil) ~= (x.expect ~= 'free')"},
    {FAKE_NUMBER_UNSEEN, SCRIPT_EXCHANGE, "find(held, wish, 1, true)",
     "find(held, wish:match('^op=[^.]*%.') or wish, 1, true)"},
    {FAKE_NUMBER_UNSEEN, SCRIPT_EXCHANGE, "find(held, asks or wish, 1, true)",
     "find(held, (asks or wish):match('^op=[^.]*%.') or wish, 1, true)"},
    {FAKE_NUMBER_UNSEEN, SCRIPT_EXCHANGE, "find(held, asks, 1, true)",
     "find(held, asks:match('^op=[^.]*%.'), 1, true)"},
    {FAKE_NUMBER_UNSEEN, SCRIPT_EXCHANGE, "return (held and held.op or 'free') ~= x.expect",
     "return (held and held.op or 'free'):match('^[^.]*') ~= x.expect:match('^[^.]*')"},
    {FAKE_BACK_ANYWHERE, SCRIPT_EXCHANGE, "not held and x.expect == 'free' and gone == x.by",
     "not held"},
    {FAKE_BACK_ANYWHERE, SCRIPT_EXCHANGE, "x.gone, x.is_buried = gone, gone and gone ~= x.by",
     "x.gone, x.is_buried = gone, false"},
    {FAKE_FLOOR_IS_HOLD, SCRIPT_EXCHANGE,
     "return seq:match('/(.*)$') or op, select(2, version(seq))", "return version(seq)"},
    {FAKE_HEALS_ANY, SCRIPT_EXCHANGE, "return birth == its and number <= most",
     "return birth and its and number <= most"},
    {FAKE_ABSENT_IS_MET, SCRIPT_EXCHANGE, "return (held and held.op or 'free') ~= x.expect",
     "return held and held.op ~= x.expect"},
};

static char *change(char *text, const struct edit *e)
{
    char *at = strstr(text, e->from);
    if (!at) {
        fprintf(stderr, "mutation \"%s\": %s has no more \"%s\"\n",
                fake_mutation_names[e->mutation], script_get(e->script)->name, e->from);
        abort();
    }
    size_t head = (size_t)(at - text), tail = strlen(at + strlen(e->from));
    char *out = util_alloc(head + strlen(e->to) + tail + 1);
    memcpy(out, text, head);
    strcpy(out + head, e->to);
    strcat(out + head, at + strlen(e->from));
    free(text);
    return out;
}

char *fake_mutate(enum script script, char *text)
{
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        if (edits[i].mutation == fake_mutation && edits[i].script == script)
            text = change(text, &edits[i]);
    }
    return text;
}
