/*
 * Keeps the status page fresh: replaces <main> every other second by that of a fresh page. Leaves selected text alone,
 * and asks for nothing while nobody looks. Parses only <main>: this page's policy would refuse the styles of another.
 */
(() => {
    const again = () => setTimeout(turn, 2000);
    async function replaceMain() {
        const reply = await fetch(location.pathname, {signal: AbortSignal.timeout(5000)});
        const text = await reply.text();
        const main = text.slice(text.indexOf('<main'), text.indexOf('</main>'));
        const fresh = new DOMParser().parseFromString(main, 'text/html').querySelector('main');
        document.querySelector('main').replaceWith(fresh);
        document.title = fresh.dataset.title;
    }
    async function turn() {
        if (!document.hidden && getSelection().isCollapsed) {
            const isFresh = await replaceMain().then(() => true, () => false);
            document.body.classList.toggle('stale', !isFresh);
        }
        again();
    }
    again();
})();
