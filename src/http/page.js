/*
 * Fills the status page from status.json every other second. Leaves selected text alone, and asks for nothing while
 * nobody looks. Names come from strangers: all that is shown goes in as text, never as HTML.
 */
'use strict';

const DASH = '\u2013', CURVE = {width: 118, height: 32};
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
function figure(of, ...children) {
    const cell = make('td', 'n', ...children);
    cell.dataset.of = of;
    return cell;
}

const lockCell = name => make('td', '', make('bdi', 'lock', name));

/* Who has taken a lock by commands of Redis is not tied to it: the program, and what it has written there. */
function programCell(row) {
    return make('td', 'who', row.client ? `#${row.client} ` : '', make('bdi', '', row.library || 'commands of Redis'), ' ',
        make('small', '', make('bdi', '', row.value)));
}

function clientCell(row) {
    const name = row.client_name ? [make('bdi', '', row.client_name), ' '] : [];
    return make('td', 'who', `#${row.client} `, ...name, make('small', '', row.address));
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
    show('lost', count(s.lost), s.lost ? 'bad' : '');
    show('jeopardy', s.jeopardy ? `${count(s.jeopardy)} in jeopardy now` : 'none in jeopardy');
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
            m.quarantine_ms > 0 ? ` for ${ms(m.quarantine_ms)}` : '',
            m.missing ? make('small', '', `waits for ${m.missing}`) : '',
            m.signed ? make('small', '', `signed by ${m.signed}`) : '',
            m.unsigned_why ? make('small', '', `not by this broker: ${m.unsigned_why}`) : '',
            m.up || !m.error ? '' : make('small', '', m.error)),
        figure('answers in', m.up ? us(m.latency_us) : DASH), figure('in flight', count(m.in_flight)),
        figure('clock', `${m.clock_offset_ms < 0 ? '' : '+'}${m.clock_offset_ms}\u00a0ms`),
        figure('restarts', count(m.restarts)),
    ];
}

function lossCells(l) {
    const why = make('td', 'why', l.reason);
    if (LOSSES[l.reason])
        why.append(make('small', '', LOSSES[l.reason]));
    return [lockCell(l.lock), why, make('td', 'n', `${ms(l.ago_ms)} ago`), figure('held for', ms(l.held_ms)),
        figure('token', l.token), make('td', '', l.client ? `#${l.client}` : '')];
}

function quantileText(n, least) {
    return n === undefined ? DASH : n < least ? `<\u00a0${us(least)}` : us(n);
}

function timeCells([name, quantiles]) {
    const [label, least] = TIMES[name];
    return [make('td', '', label), ...[0, 1, 2].map(i => make('td', 'n', quantileText(quantiles[i], least)))];
}

function showAll(s) {
    showState(s);
    showFigures(s);
    showRows('masters', s.masters, masterCells);
    showRows('waits', s.waits, w => [lockCell(w.lock), figure('for', ms(w.since_ms)), clientCell(w)]);
    showRows('holds', s.holds, h => [lockCell(h.lock), figure('for', ms(h.since_ms)), figure('lease', ms(h.left_ms)),
        figure('waiting', count(h.waiting)), h.drop_in ? programCell(h) : clientCell(h)]);
    showRows('losses', s.losses, lossCells);
    showRows('times', Object.entries(s.times), timeCells);
    document.querySelector('main').hidden = false;
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

turn();
