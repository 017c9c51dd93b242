/*
 * Fills the status page from status.json every other second, and with the locks that somebody looks for. Leaves selected
 * text alone, and asks for nothing while nobody looks. Names come from strangers: all that is shown goes in as text, never
 * as HTML. What has been seen of the locks that were lost is remembered by this browser: nothing is changed at the broker.
 */
'use strict';

const DASH = '\u2013', CURVE = {width: 118, height: 32}, FOUND_MAX = 50, SEEN = 'holdfast.seen';
const COLOURS = {ok: '16794a', warn: 'c77700', bad: 'bf2330'};
const LOSSES = {
    'no-quorum': 'too few masters confirmed its renewal in time',
    'gone': 'a majority of the masters had it no more',
    'moved': 'its owner took it back on another connection or broker',
    'left': 'the connection to which it belonged has ended',
    'max-hold': 'its MAXHOLD was over',
    'forced': 'an administrator said FORCEUNLOCK',
    'pause': 'this broker stood still for longer than the lease',
};
/* Somebody wanted these: no alarm. */
const WANTED = ['moved', 'max-hold', 'forced'];
/* The second: measured by a clock of milliseconds, what is less is not known any better. */
const TIMES = {
    acquire_us: ['Masters decide on a lock', 1000],
    wait_us: ['Wait for a granted lock', 0],
    hold_us: ['A lock is held', 1000],
    renewal_lateness_us: ['Renewals leave late by', 1000],
    loop_lag_us: ['Timers run late by', 1000],
};

/* ---- numbers for people ---- */

const count = n => String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f');

function two(n, per, large, small) {
    const rest = n % per;
    return `${Math.floor(n / per)}\u00a0${large}` + (rest ? ` ${rest}\u00a0${small}` : '');
}

function ms(n) {
    const s = Math.floor(n / 1000);
    return n < 1000 ? `${n}\u00a0ms` : s < 10 ? `${(n / 1000).toFixed(1)}\u00a0s` : s < 60 ? `${s}\u00a0s`
        : s < 3600 ? two(s, 60, 'min', 's') : s < 86400 ? two(Math.floor(s / 60), 60, 'h', 'min')
        : two(Math.floor(s / 3600), 24, 'd', 'h');
}

function us(n) {
    return n < 1000 ? `${n}\u00a0\u00b5s` : n < 10000 ? `${(n / 1000).toFixed(1)}\u00a0ms` : ms(Math.floor(n / 1000));
}

/* ---- elements ---- */

const byId = id => document.getElementById(id);

function show(id, text, colour) {
    byId(id).textContent = text;
    if (colour !== undefined)
        byId(id).className = `${byId(id).className.split(' ')[0]} ${colour}`;
}

function make(tag, className, ...children) {
    const element = document.createElement(tag);
    element.className = className;
    element.append(...children);
    return element;
}

/* A cell with a figure, and what it is of for narrow windows. */
function named(className, of, ...children) {
    const cell = make('td', className, ...children);
    cell.dataset.of = of;
    return cell;
}

const figure = (of, ...children) => named('n', of, ...children);
const words = (of, ...children) => named('', of, ...children);

const lockCell = name => make('td', '', make('bdi', 'lock', name));

/* Who has taken a lock by commands of Redis is not tied to it: the program, and what it has written there. */
function programCell(row) {
    return make('td', 'who', row.client ? `#${row.client} ` : '', make('bdi', '', row.library || 'commands of Redis'), ' ',
        make('small', '', make('bdi', '', row.value)));
}

function clientCell(row) {
    const name = row.client_name ? [make('bdi', '', row.client_name), ' '] : [];
    const more = row.holding > 1 ? make('small', '', `and ${count(row.holding - 1)} more`) : '';
    return make('td', 'who', `#${row.client} `, ...name, make('small', '', row.address), more);
}

function showRows(id, rows, cellsOf) {
    const body = byId(id), table = body.closest('table'), none = table.dataset.none;
    body.replaceChildren(...rows.map(row => make('tr', '', ...cellsOf(row))));
    table.hidden = none && rows.length === 0;
    if (none)
        byId(none).hidden = rows.length > 0;
}

function draw(tag, attributes, ...children) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes))
        element.setAttribute(name, value);
    element.append(...children);
    return element;
}

/* Draws the last minute: the newest at the right edge, the highest a little below the upper one. */
function showCurve(id, samples) {
    const {width, height} = CURVE, first = width - 2 * (samples.length - 1), max = Math.max(1, ...samples);
    const y = n => (height - 1 - n / max * (height - 4)).toFixed(1);
    const points = samples.map((n, i) => `${first + 2 * i},${y(n)}`).join(' ');
    const tile = byId(id).parentElement;
    tile.querySelector('svg')?.remove();
    if (samples.length > 1)
        tile.append(draw('svg', {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': true},
            draw('path', {d: `M${first},${height} L${points} L${width},${height}Z`}), draw('polyline', {points})));
}

/* ---- locks ---- */

const KINDS = {exclusive: '', shared: ' reading', limit: ''};

/* "3 x batch, report reading", and how many more there are. */
function groupsCell(of, groups, total, none) {
    const cell = named('groups', of, ...groups.map(g => make('span', '', g.n > 1 ? `${count(g.n)}\u00a0\u00d7\u00a0` : '',
        g.client ? make('bdi', '', g.client) : 'no name', KINDS[g.kind])));
    const rest = total - groups.reduce((sum, g) => sum + g.n, 0);
    if (rest > 0)
        cell.append(make('span', '', `${count(rest)} more`));
    if (total === 0)
        cell.append(none);
    return cell;
}

function heldCells(l) {
    const permits = l.kind === 'limit' && l.holding ? make('small', '', `${l.holding} of ${l.limit} permits`) : '';
    const cell = groupsCell('held by', l.holders, l.holding, 'nobody here');
    cell.append(permits);
    return [cell, figure('for', l.holding ? ms(l.since_ms) : DASH), figure('lease', l.holding ? ms(l.left_ms) : DASH)];
}

function lockCells(l) {
    return [lockCell(l.lock), figure('waiting', count(l.waiting)), figure('longest', l.waiting ? ms(l.waited_ms) : DASH),
        groupsCell('who waits', l.waiters, l.waiting, DASH), ...heldCells(l)];
}

/* One that commands of Redis hold. */
function dropInCells(row) {
    return [lockCell(row.lock), figure('waiting', count(row.waiting)), figure('longest', DASH), make('td', '', DASH),
        programCell(row), figure('for', ms(row.since_ms)), figure('lease', ms(row.left_ms))];
}

function showLocks(title, none, rows) {
    byId('locks-title').firstChild.data = title;
    byId('no-locks').textContent = none;
    showRows('locks', rows, row => row.drop_in ? dropInCells(row) : lockCells(row));
}

/* Each answer is of some thousand locks: asks until enough are found, or all are looked at. */
async function findLocks(text) {
    const found = [];
    let cursor = '0';
    do {
        const reply = await fetch(`locks.json?find=${encodeURIComponent(text)}&cursor=${cursor}`,
            {signal: AbortSignal.timeout(5000)});
        const part = await reply.json();
        found.push(...part.locks, ...part.drop_in);
        cursor = part.cursor;
    } while (cursor !== '0' && found.length < FOUND_MAX && text === byId('find').value);
    const more = cursor !== '0' || found.length > FOUND_MAX;
    found.sort((a, b) => b.waiting - a.waiting || b.since_ms - a.since_ms);
    if (text === byId('find').value)
        showLocks(more ? `Found, the first ${FOUND_MAX}` : `Found, ${count(found.length)}`,
            'No client of this broker holds such a lock or waits for one.', found.slice(0, FOUND_MAX));
}

async function showContended(s) {
    const text = byId('find').value;
    if (text)
        await findLocks(text);
    else
        showLocks('Most contended', 'Nobody waits for a lock.', s.contended);
}

/* ---- what was lost ---- */

/* How many losses were seen of this run of the broker. They may have been forgotten there (CONFIG RESETSTAT), or here. */
function countSeen(s, alarms) {
    try {
        const seen = JSON.parse(localStorage.getItem(SEEN));
        return seen?.id === s.id ? Math.min(seen.n, alarms) : 0;
    } catch {
        return 0;
    }
}

function showLost(s) {
    const sum = wanted => Object.entries(s.lost).reduce((n, [why, m]) => n + (WANTED.includes(why) === wanted ? m : 0), 0);
    const alarms = sum(false), wanted = sum(true), fresh = alarms - countSeen(s, alarms);
    show('lost', count(alarms), fresh ? 'bad' : '');
    show('lost-new', [alarms === 0 ? 'none' : fresh === 0 ? 'all seen' : `${count(fresh)} new`,
        ...wanted ? [`${count(wanted)} wanted`] : []].join(', '));
    byId('seen').hidden = fresh === 0;
    byId('seen').onclick = () => {
        localStorage.setItem(SEEN, JSON.stringify({id: s.id, n: alarms}));
        showLost(s);
    };
    let left = fresh;
    showRows('losses', s.losses, l => lossCells(l, !WANTED.includes(l.reason) && left-- > 0));
}

/* ---- the page ---- */

function showState(s) {
    const some = ['Draining', 'Paused'].includes(s.state) || (s.state === 'Ready' && s.voting < s.masters.length);
    const colour = some ? 'warn' : s.state === 'Ready' ? 'ok' : 'bad';
    document.title = `${s.state} \u00b7 holdfast`;
    byId('icon').href = 'data:image/svg+xml,' + encodeURIComponent(
        `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='#${COLOURS[colour]}'>` +
        `<path d='${byId('lock').getAttribute('d')}'/></svg>`);
    show('state', s.state, colour);
    show('about', `${s.version} \u00b7 broker ${s.id} \u00b7 up ${ms(s.uptime_ms)}`);
    show('status', colour === 'ok' ? '' : s.status, colour);
    show('notice', s.notice);
}

function showFigures(s) {
    const latest = samples => count(samples.at(-1) ?? 0);
    show('held', count(s.held));
    show('lease', s.lease_min_remaining_ms < 0 ? '' : `shortest lease ${ms(s.lease_min_remaining_ms)}`);
    show('waiting', count(s.waiting));
    show('longest', s.waits.length ? `longest ${ms(s.waits[0].since_ms)}` : '');
    show('granted', latest(s.curves.granted));
    show('all-granted', `${count(s.granted)} in all`);
    show('commands', latest(s.curves.commands));
    show('all-commands', `${count(s.commands)} in all`);
    show('jeopardy', count(s.jeopardy), s.jeopardy ? 'warn' : '');
    show('jeopardy-why', s.jeopardy ? 'a renewal has failed' : 'none');
    for (const what of ['refused', 'timed_out', 'errors']) {
        const inMinute = s.curves[what].reduce((sum, n) => sum + n, 0);
        show(what, latest(s.curves[what]), what === 'errors' && inMinute ? 'warn' : '');
        show(`all-${what}`, `${count(inMinute)} in a minute`);
    }
    show('clients', count(s.clients));
    show('max-clients', `of at most ${count(s.max_clients)}`);
    show('votes', `${s.voting} of ${s.masters.length} vote, a lock needs ${s.quorum}` +
        (s.roll_call_memory_left_ms ? `; this broker cannot sign for ${ms(s.roll_call_memory_left_ms)}` : ''));
    Object.entries(s.curves).forEach(([id, samples]) => showCurve(id, samples));
}

function masterCells(m) {
    const colour = m.up ? 'ok' : ['down', 'refused'].includes(m.state) ? 'bad' : 'warn';
    return [
        make('td', '', make('bdi', 'lock', m.name), make('small', '', make('bdi', '', m.address))),
        make('td', '', make('span', colour, make('i', 'dot'), m.state),
            make('small', '', m.quarantine_ms > 0 ? `for ${ms(m.quarantine_ms)} more` : `for ${ms(m.since_ms)}`),
            m.missing ? make('small', '', `waits for ${m.missing}`) : '',
            m.signed ? make('small', '', `signed by ${m.signed}`) : '',
            m.unsigned_why ? make('small', '', `not by this broker: ${m.unsigned_why}`) : '',
            m.up || !m.error ? '' : make('small', '', m.error)),
        figure('answers in', m.up ? us(m.latency_us) : DASH), figure('in flight', count(m.in_flight)),
        figure('clock', `${m.clock_offset_ms < 0 ? '' : '+'}${m.clock_offset_ms}\u00a0ms`),
        figure('restarts', count(m.restarts)), words('version', m.version || DASH),
    ];
}

function peerCells(p) {
    const state = make('span', p.up ? 'ok' : p.state === 'silent' ? 'bad' : 'warn', make('i', 'dot'), p.state);
    return [make('td', '', make('bdi', 'lock', p.address)),
        make('td', '', state, p.named ? make('small', '', 'clients are sent there') : ''),
        figure('heard', p.heard_ms < 0 ? 'never' : `${ms(p.heard_ms)} ago`)];
}

function lossCells(l, isNew) {
    const why = make('td', WANTED.includes(l.reason) ? 'why dim' : isNew ? 'why bad' : 'why', l.reason);
    if (LOSSES[l.reason])
        why.append(make('small', '', LOSSES[l.reason]));
    return [lockCell(l.lock), why, make('td', 'n', `${ms(l.ago_ms)} ago`), figure('held for', ms(l.held_ms)),
        figure('token', l.token), make('td', '', l.client ? `#${l.client}` : '')];
}

function quantileText(n, least) {
    return n === undefined ? DASH : n < least ? `<\u00a0${us(least)}` : us(n);
}

function timeCells([name, times]) {
    const [label, least] = TIMES[name];
    const cells = (of, quantiles) => ['median', '99\u00a0%', 'worst'].map((what, i) =>
        figure(of + what, quantileText(quantiles[i], least)));
    return [make('td', '', label), ...cells('', times.recent), ...cells('since the start: ', times.ever)];
}

let shown = null, typing = 0;

function showAll(s) {
    shown = s;
    showState(s);
    showFigures(s);
    showRows('masters', s.masters, masterCells);
    byId('jeopardy-card').hidden = s.in_jeopardy.length === 0;
    showRows('in-jeopardy', s.in_jeopardy, h => [lockCell(h.lock), figure('lease', ms(h.left_ms)), figure('held for', ms(h.since_ms)),
        figure('waiting', count(h.waiting)), clientCell(h)]);
    byId('peers-card').hidden = s.peers.length === 0;
    showRows('peers', s.peers, peerCells);
    showRows('waits', s.waits, w => [lockCell(w.lock), figure('for', ms(w.since_ms)), clientCell(w)]);
    showRows('holds', s.holds, h => [lockCell(h.lock), figure('for', ms(h.since_ms)), figure('lease', ms(h.left_ms)),
        figure('waiting', count(h.waiting)), h.drop_in ? programCell(h) : clientCell(h)]);
    showLost(s);
    showRows('times', Object.entries(s.times), timeCells);
    document.querySelector('main').hidden = false;
    return showContended(s);
}

async function turn() {
    if (!document.hidden && getSelection().isCollapsed) {
        const answer = fetch('status.json', {signal: AbortSignal.timeout(5000)});
        const fresh = answer.then(reply => reply.json()).then(showAll);
        const isStale = await fresh.then(() => false, error => (console.error(error), true));
        document.body.classList.toggle('stale', isStale);
    }
    setTimeout(turn, 2000);
}

/* The address may say what to look for: /#find=orders */
byId('find').value = new URLSearchParams(location.hash.slice(1)).get('find') ?? '';
byId('find').addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => shown && showContended(shown).catch(console.error), 200);
});
turn();
