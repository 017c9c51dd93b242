#!/usr/bin/env bash
# Checks the models of the protocol (locks.pml, permits.pml, calls.pml, dropin.pml, outage.pml, README.md): each configuration must be searched to its end
# without an error, and with a rule taken out the error must be found.
# usage: run.sh [WORD]    only the lines with this word in their name
# MODEL_FULL=1: larger bounds (some minutes, up to 6 GB). MODEL_JOBS: how many at a time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# name, what to define; with MODEL_FULL=1 also the third column
configurations='
tokens              -DOPS=3 -DTOP=4                                     | -DTOP=7
tokens-early        -DOPS=3 -DTOP=3 -DSTART=0 -DEARLY=1                 | -DTOP=5 -DSTART=1
tokens-early-spread -DOPS=2 -DTOP=6 -DSTART=2 -DEARLY=1                 | -DTOP=8
restart             -DOPS=3 -DTOP=3 -DSTART=0 -DRESTART                 | -DTOP=5
restart-spread      -DOPS=2 -DTOP=5 -DRESTART                           | -DTOP=7 -DSTART=2
tombstones          -DOPS=2 -DTOP=5 -DTOMBS -DRESTART                   | -DOPS=3 -DTOP=4
handover            -DOPS=3 -DTOP=6 -DHANDOVER                          | -DTOP=7 -DSTART=2
takeover            -DOPS=3 -DTOP=5 -DSTART=0 -DTAKEOVER                | -DTOP=6
plant               -DTOP=3 -DSTART=0 -DRENEW                           | -DTOP=4
plant-tombstones    -DTOP=3 -DSTART=0 -DRENEW -DTOMBS                   | -DTOP=4
plant-restart       -DTOP=3 -DSTART=0 -DRENEW -DRESTART -DNO_LATE_ACQUIRE | -DTOP=4
plant-early         -DTOP=3 -DSTART=0 -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE | -DTOP=4
permits             -DOPS=2 -DTOP=4                                     | -DTOP=6
permits-three       -DOPS=3 -DTOP=3 -DSTART=0                           | -DTOP=4
calls               -DOPS=2 -DCALLS=7                                   | -DCALLS=9
calls-three         -DOPS=3 -DCALLS=8                                   | -DCALLS=10
dropin-changes      -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS           |
dropin-end          -DHELD_FIRST -DFIRST=4 -DOTHERS=8 -DLOOKS -DPLANTING |
dropin-ends         -DHELD_FIRST -DFIRST=8 -DOTHERS=8 -DLOOKS           |
dropin-handover     -DHELD_FIRST -DFIRST=16 -DOTHERS=4 -DLOOKS          |
dropin-takes        -DFREE_FIRST -DFIRST=2 -DOTHERS=2 -DLOOKS           |
dropin-take-end     -DFREE_FIRST -DFIRST=2 -DOTHERS=8 -DLOOKS           |
dropin-twice        -DHELD_FIRST -DFIRST=4 -DOTHERS=2                   | -DEXCHANGES=2
dropin-expiry       -DHELD_FIRST -DFIRST=4 -DOTHERS=2 -DEXPIRY          |
dropin-looks-heal   -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS -DLOOKS_HEAL |
dropin-made-whole   -DHELD_FIRST -DFIRST=8 -DOTHERS=8 -DLOOKS -DLOOKS_HEAL -DOWN_END |
dropin-overwritten  -DHELD_FIRST -DFIRST=16 -DOTHERS=2 -DLOOKS -DLOOKS_HEAL -DOVERWRITES |
dropin-takes-whole  -DFREE_FIRST -DFIRST=2 -DOTHERS=2 -DLOOKS -DLOOKS_HEAL -DOVERWRITES |
dropin-restart      -DHELD_FIRST -DFIRST=4 -DOTHERS=2 -DRESTART         |
plant-prompt        -DTOP=3 -DSTART=0 -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE -DPROMPT -DNEWEST | -DTOP=4
outage              -DRESTARTS=2 -DRENEWED=3 -DCOPIES=1                 | -DBROKERS=3 -DCRASHES=1
outage-crash        -DRESTARTS=1 -DRENEWED=3 -DBROKERS=3 -DCRASHES=1    | -DRESTARTS=2
outage-without-list -DRESTARTS=2 -DRENEWED=3 -DCOPIES=1 -DCRASHES=1 -DLIST=0 | -DBROKERS=3
outage-three        -DMASTERS=3 -DOPS=2                                 | -DSTART=1 -DRESTARTS=2
outage-three-spread -DMASTERS=3 -DOPS=2 -DSTART=1 -DLIST=0              | -DRESTARTS=2
outage-three-copies -DMASTERS=3 -DOPS=2 -DCOPIES=1                      | -DSTART=1
outage-three-crash  -DMASTERS=3 -DOPS=2 -DCRASHES=1 -DRENEWED=1         | -DSTART=1
outage-takeover     -DTAKEOVER -DPROMPT -DBROKERS=3 -DCRASHES=1         | -DRESTARTS=2 -DCOPIES=1
outage-takeover-three -DMASTERS=3 -DOPS=2 -DTAKEOVER -DPROMPT           | -DSTART=1
outage-takeover-no-count -DTAKEOVER -DNO_COUNT -DRESTARTS=2 -DRENEWED=7 -DBROKERS=3 |
outage-takeover-stays -DTAKEOVER -DTAKEN_STAYS -DRESTARTS=2 -DRENEWED=7 -DBROKERS=3 -DCRASHES=1 -DLIST=0 |
outage-force        -DFORCE -DPROMPT -DOPS=2 -DRESTARTS=2 -DBROKERS=3 -DCRASHES=1 | -DOPS=3 -DCRASHES=0
outage-promotion    -DPROMOTION -DRENEWED=7 -DRESTARTS=2                | -DCOPIES=1
outage-name         -DONE_NAME -DRENEWED=3 -DRESTARTS=2                 | -DRESTARTS=3
outage-name-three   -DONE_NAME -DMASTERS=3 -DOPS=2 -DRENEWED=0          | -DRENEWED=1
outage-name-three-second -DONE_NAME -DMASTERS=3 -DOPS=2 -DRENEWED=0 -DSECOND_FIRST | -DRENEWED=1
outage-lease        -DRENEWED=0 -DRESTARTS=2 -DCOPIES=1                 | -DBROKERS=3 -DCRASHES=1
outage-handover     -DHANDOVER -DRENEWED=7 -DRESTARTS=3 -DCOPIES=1 -DCRASHES=1 | -DLIST=0
outage-cluster      -DPROMOTION -DCLUSTER -DRENEWED=7 -DRESTARTS=2      | -DCOPIES=1
outage-cluster-terms -DPROMOTION -DCLUSTER -DEPOCHS -DRENEWED=7 -DRESTARTS=2 | -DCOPIES=1
outage-promotion-no-list -DPROMOTION -DRENEWED=7 -DRESTARTS=2 -DLIST=0  | -DCOPIES=1 -DCRASHES=1
'

# name, what to define, and the property that must fail
mutations='
commit-without-condition        -DNO_COMMIT_CONDITION -DEARLY=1                | unique
commit-that-lowers              -DNO_RAISE -DEARLY=1                           | unique
quorum-of-the-connected         -DNO_CONFIGURED_QUORUM                         | any
grant-after-the-deadline        -DNO_DEADLINE                                  | exclusion
undo-without-condition          -DNO_UNDO_CONDITION -DOPS=3                    | exclusion
operation-id-used-again         -DNO_FRESH_ID -DOPS=3                          | exclusion
no-quarantine                   -DRESTART -DNO_QUARANTINE                      | exclusion
no-floor                        -DRESTART -DNO_FLOOR                           | unique
floor-from-too-few              -DRESTART -DNO_FLOOR_MAJORITY                  | unique
floor-at-the-start              -DRESTART -DNO_LATE_FLOOR                      | unique
no-tombstone                    -DTOMBS -DNO_TOMB=true                         | released
no-tombstone-for-plants         -DTOMBS -DRENEW -DNO_PLANT_TOMB -DTOP=3 -DSTART=0 | released
request-outlives-a-restart      -DTOMBS -DRESTART -DNO_RUN_ID                  | released
plant-before-the-majority       -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE -DPROMPT -DNEWEST -DTOP=3 -DSTART=0 -DNO_PLANT_CONDITION | newer
plant-counts-as-a-vote          -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE -DPROMPT -DNEWEST -DTOP=3 -DSTART=0 -DNO_PLANT_CONDITION -DNO_PLANT_SILENCE -DROUNDS=1 | newer
vote-in-quarantine              -DRENEW -DRESTART -DNO_LATE_ACQUIRE -DTOP=3 -DSTART=0 -DNO_QUARANTINE_SILENCE | exclusion
renewed-after-its-deadline      -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE -DTOP=3 -DSTART=0 -DNO_END_BY_DEADLINE | rival
takeover-with-the-old-id        -DTAKEOVER -DOPS=3 -DNO_NEW_ID                 | exclusion
takeover-with-the-old-token     -DTAKEOVER -DOPS=3 -DNO_NEW_TOKEN              | unique
takeover-that-is-undone         -DTAKEOVER -DOPS=3 -DNO_KEEPING                | exclusion
takeover-that-shortens          -DTAKEOVER -DOPS=3 -DNO_LASTING_LEASE          | exclusion
permits-of-one-token            -DOPS=2 -DTOP=5 -DNO_STRICT                    | unique
calls-without-numbers           -DNO_NUMBERS                                   | comes-back
calls-releases-not-numbered     -DNO_NUMBER_OF_RELEASES                        | comes-back
calls-plants-not-numbered       -DNO_NUMBERS_FOR_PLANTS                        | comes-back
calls-number-used-again         -DNO_NEW_NUMBER                                | comes-back
calls-number-forgotten          -DNO_HOUR                                      | comes-back
calls-force-without-tombstone   -DNO_TOMB                                      | comes-back
calls-plant-after-the-release   -DNO_LAST_WORD                                 | comes-back
old-owner-goes-on               -DHANDOVER -DOPS=3 -DNO_END_BY_HANDOVER        | exclusion
dropin-reply-from-the-guess     -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DNO_ANSWER      | covered
dropin-no-operation             -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DNO_OPERATION   | chain
dropin-publish-first            -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DNO_COMMIT_FIRST | published
dropin-undo-forgotten           -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DEXCHANGES=2 -DNO_UNDO | left
dropin-split-is-a-majority      -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS -DNO_AGREEMENT | any
dropin-refused-by-one           -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DNO_CERTAINTY   | refused
dropin-absent-is-earlier        -DFIRST=4 -DOTHERS=8 -DNO_PRESENCE                 | chain
dropin-absent-refuses-an-end    -DHELD_FIRST -DFIRST=8 -DOTHERS=4 -DNO_ABSENCE     | covered
dropin-end-put-back             -DHELD_FIRST -DFIRST=8 -DOTHERS=4 -DLOOKS -DNO_PURSUIT | chain
dropin-put-back-over-anything   -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS -DNO_STANDING | chain
dropin-heals-a-later-version    -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS -DNO_HEAL_CONDITION -DNO_TOMBS | chain
dropin-no-tombstone             -DHELD_FIRST -DFIRST=4 -DOTHERS=8 -DLOOKS -DPLANTING -DNO_TOMBS | chain
dropin-look-at-an-earlier       -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS -DNO_EXACT_LOOK | refused
dropin-the-same-floor           -DHELD_FIRST -DFIRST=8 -DOTHERS=2 -DLOOKS -DLOOKS_HEAL -DNO_IDENTITY | covered
dropin-heals-what-was-seen      -DHELD_FIRST -DFIRST=4 -DOTHERS=4 -DLOOKS -DLOOKS_HEAL -DNO_LESS | chain
dropin-a-looker-plants          -DHELD_FIRST -DFIRST=8 -DOTHERS=8 -DLOOKS -DLOOKS_HEAL -DOWN_END -DNO_OWNER | chain
dropin-overwritten-at-once      -DFREE_FIRST -DFIRST=2 -DOTHERS=2 -DLOOKS -DLOOKS_HEAL -DOVERWRITES -DNO_WAITING | covered
dropin-a-call-twice             -DHELD_FIRST -DFIRST=4 -DOTHERS=8 -DLOOKS -DNO_ONCE | any
dropin-no-quarantine            -DHELD_FIRST -DFIRST=4 -DOTHERS=2 -DRESTART -DNO_QUARANTINE | covered
outage-planted-takes-part-in-claims -DMASTERS=3 -DOPS=2 -DNO_QUARANTINE_FOR_CLAIMS  | any
outage-planted-counts-at-once   -DMASTERS=3 -DOPS=2 -DSTART=1 -DNO_V                | exclusion
outage-former-votes             -DMASTERS=3 -DOPS=2 -DSTART=1 -DNO_DISCARD_OF_VOTES | kept
outage-former-renewals          -DMASTERS=3 -DOPS=2 -DSTART=1 -DNO_DISCARD_OF_RENEWALS | kept
outage-copy-stays               -DOPS=2 -DCOPIES=1 -DNO_PLANT_OVER_A_COPY             | kept
outage-copy-wins                -DMASTERS=3 -DOPS=2 -DCOPIES=1 -DNO_STALE_LOSES     | sound
outage-taken-over-and-signed    -DTAKEOVER -DPROMPT -DNO_END_BY_NEWER               | exclusion
outage-newer-is-replaced        -DTAKEOVER -DPROMPT -DNO_NEWER_WINS                 | exclusion
outage-shorter-when-replaced    -DTAKEOVER -DPROMPT -DNO_LONGER_TIME                | exclusion
outage-no-grave                 -DTAKEOVER -DPROMPT -DBROKERS=3 -DCRASHES=1 -DNO_GRAVES | rival
outage-no-grave-of-the-forced   -DFORCE -DPROMPT -DOPS=2 -DBROKERS=3 -DCRASHES=1 -DNO_GRAVES | rival
outage-no-highest-token         -DOPS=2 -DNO_HIGHEST_TOKEN                          | order
outage-signature-missing        -DRENEWED=3 -DLIST=1                                | any
outage-signed-before-planting   -DOPS=2 -DNO_PLANT_BEFORE_SIGNING                   | kept
outage-short-memory             -DOPS=2 -DCRASHES=1 -DNO_LONG_MEMORY                | exclusion
outage-short-memory-of-tokens   -DOPS=2 -DCRASHES=1 -DNO_REGISTRATION               | order
outage-promoted-opens-too-soon  -DPROMOTION -DRENEWED=2 -DNO_LONGER_QUARANTINE      | exclusion
outage-promoted-counts-too-soon -DPROMOTION -DRENEWED=2 -DNO_S_BEFORE_COUNTING      | exclusion
outage-cut-off-goes-on          -DPROMOTION -DRENEWED=2 -DNO_STOP                   | exclusion
outage-lease-not-planted        -DRENEWED=0 -DNO_PLANTS_OF_LEASES                   | kept
outage-handover-and-goes-on     -DHANDOVER -DNO_END_BY_HANDOVER                     | kept
outage-cluster-opens-by-time    -DPROMOTION -DCLUSTER -DRENEWED=0 -DDISORDER -DNO_ROLL_CALL_ALONE | exclusion
outage-cluster-counts-by-time   -DPROMOTION -DCLUSTER -DRENEWED=2 -DNO_ROLL_CALL_BEFORE_COUNTING | exclusion
outage-cluster-restarts-again   -DPROMOTION -DCLUSTER -DRENEWED=2 -DRESTARTS=2 -DNO_PROMOTION_IS_KEPT | exclusion
outage-name-no-longer-its-own   -DONE_NAME -DRESTARTS=2 -DNO_PLACE_AT_THE_END       | any
outage-name-no-waiting          -DONE_NAME -DRESTARTS=2 -DNO_WAITING                | exclusion
outage-name-taken-anew          -DONE_NAME -DRESTARTS=2 -DNO_NEW_MEMORY             | any
outage-name-another-was-there   -DONE_NAME -DRESTARTS=2 -DNO_VACANCY                | exclusion
outage-limit-takeover           -DTAKEOVER                                          | rival
outage-limit-both-are-dead      -DTAKEOVER -DPROMPT -DBROKERS=3 -DCRASHES=2         | rival
known-limit                     -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE -DNEWEST -DTOP=3 -DSTART=0 | newer
known-limit-foreign-loses       -DRENEW -DEARLY=1 -DNO_LATE_ACQUIRE -DNEWEST -DTOP=3 -DSTART=0 -DFOREIGN_LOSES | newer
'

for tool in spin gcc; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is not there"
        exit 77
    fi
done

# model: what the text of a failed assertion says.
property_of() {
    case $1 in
    *on_the_chain*) echo chain ;;
    *was_free*) echo covered ;;
    *published*) echo published ;;
    dropin:*']!=3)'*) echo refused ;;
    dropin:*']==3)'*) echo left ;;
    outage:*has_moved*) echo sound ;;
    outage:*quarantine*) echo kept ;;
    *given*) echo unique ;;
    *begun*) echo began-later ;;
    *'>hi)'*) echo order ;;
    *rival*) echo rival ;;
    *newer*) echo newer ;;
    *released*) echo released ;;
    *gone*) echo comes-back ;;
    *assertion*) echo exclusion ;;
    *) echo none ;;
    esac
}

# one KIND NAME DEFINES EXPECTED: prints one line that begins with ok or FAILED. Runs in a process of its own.
one() {
    local level=-O2 kind=$1 name=$2 expected=$4 dir=$work/$1.$2 memory=2000 options=(-E -m100000 -w22) defines said verdict=FAILED
    local model=locks
    case $name in permits* | calls* | dropin* | outage*) model=${name%%-*} ;; esac
    read -r -a defines <<<"$3"
    [ "${MODEL_FULL-}" != 1 ] || memory=6000
    [ "$kind" = configuration ] || level=-O1 # what takes longest is to compile it
    mkdir "$dir" && cd "$dir"
    if ! spin "${defines[@]}" -a "$here/$model.pml" >spin.log 2>&1 ||
        ! gcc "$level" -w -DSAFETY -DMEMLIM=$memory -o pan pan.c >>spin.log 2>&1; then
        echo "FAILED $name: $(head -n 3 spin.log | tr '\n' ' ')"
        return
    fi
    timeout 1200 ./pan "${options[@]}" >out 2>&1 || true
    said=$(property_of "$model:$(grep 'assertion violated' out || true)")
    if ! grep -q 'errors: [0-9]' out || grep -qiE 'search depth too small|out of memory|truncated|bit statespace' out; then
        said='not searched to its end'
    elif [ "$kind" = configuration ]; then
        ! grep -q '^Warning: Search not completed' out && grep -q 'errors: 0$' out && verdict=ok
    elif [ "$said" = "$expected" ] || { [ "$expected" = any ] && [ "$said" != none ]; }; then
        verdict=ok
    fi
    printf '%-6s %-27s %9d states %6.1f s %5d MB  %s\n' "$verdict" "$name" \
        "$(awk '/states, stored/ { print $1 + 0 }' out)" "$(awk '/elapsed time/ { print $4 }' out)" \
        "$(awk '/total actual memory/ { print int($1) }' out)" \
        "$([ "$kind" = configuration ] && [ "$said" = none ] && echo 'all of them, no error' || echo "breaks: $said")"
    [ $verdict = ok ] || tail -n 20 out
    rm -rf "$dir"
}
export -f one property_of

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work here MODEL_FULL

list() {
    while IFS='|' read -r first second; do
        read -r name defines <<<"$first"
        case $name in '') continue ;; *"${2-}"*) ;; *) continue ;; esac
        if [ "$1" = mutation ]; then
            printf '%s\0%s\0%s\0%s\0' mutation "$name" "$defines" "${second# }"
        else
            [ "${MODEL_FULL-}" != 1 ] || defines+=$second
            printf '%s\0%s\0%s\0\0' configuration "$name" "$defines"
        fi
    done
}

{
    list configuration "${1-}" <<<"$configurations"
    list mutation "${1-}" <<<"$mutations"
} | xargs -0 -n 4 -P "${MODEL_JOBS:-2}" bash -c 'one "$@"' one | tee "$work/results"

passed=$(grep -c '^ok ' "$work/results" || true)
failed=$(grep -c '^FAILED' "$work/results" || true)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
