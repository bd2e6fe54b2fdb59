/** The looks of the page: light and dark as the reader's system is, readable in print, nothing loaded. */
import { toneProperties } from '../../metrics/tones.ts';

export const pageStyle = `
:root{color-scheme:light dark;--back:#fbfbf9;--card:#fff;--text:#1c2024;--dim:#5b6470;--edge:#d9dde2;--grid:#e6e9ed;--line:#1f5fa8;--code:#f0f2f5;--blue:#1f5fa8;
${toneProperties('light')}}
@media (prefers-color-scheme:dark){:root{--back:#14171a;--card:#1c2024;--text:#e7eaee;--dim:#9aa4b0;--edge:#343b43;--grid:#2b3138;--line:#7cb7ff;--code:#272d33;--blue:#8fc1ff;
${toneProperties('dark')}}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:56rem;background:var(--back);color:var(--text);font:16px/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.15rem;margin:0 0 .25rem}
h2{font-size:1.5rem;line-height:1.25;margin:.6rem 0 .4rem}
h3{font-size:1rem;margin:1.4rem 0 .4rem}
p{margin:.4rem 0}
.dim{color:var(--dim)}
a{color:var(--blue)}
article{background:var(--card);border:1px solid var(--edge);border-radius:.6rem;padding:1.25rem 1.4rem;margin:1.2rem 0}
.badge{display:inline-block;white-space:nowrap;padding:.05rem .6rem;border-radius:1rem;font-weight:650;font-size:.85rem}
.sick,.unread{color:var(--bad);background:var(--bad-soft)}
.watch{color:var(--warn);background:var(--warn-soft)}
.cannot-tell{color:var(--dim);border:1px solid var(--line)}
.healthy{color:var(--good);background:var(--good-soft)}
.run{display:flex;flex-wrap:wrap;gap:.3rem .8rem;align-items:baseline}
.run b{font-weight:600}
ul{margin:.3rem 0;padding-left:1.3rem}
li{margin:.25rem 0}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.875em;background:var(--code);border-radius:.3rem}
code{padding:.1em .3em}
pre{padding:.6rem .8rem;margin:.4rem 0;white-space:pre-wrap;border-left:3px solid var(--line);user-select:all}
figure{margin:1.1rem 0 0}
figcaption{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline;font-size:.9rem}
figcaption b{font-weight:600}
svg{display:block;width:100%;min-width:32rem;height:auto;margin-top:.2rem}
svg text{font:12px system-ui,sans-serif;fill:var(--dim)}
.axis path{stroke:var(--grid);fill:none}
.base path{stroke:var(--dim)}
.line{fill:none;stroke:var(--line);stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.spread{fill:var(--line);opacity:.22}
.broken{stroke:var(--bad);stroke-width:1.75;fill:none}
.restart{stroke:var(--dim);stroke-dasharray:3 4;fill:none}
.band{stroke:none}
.band.muted{fill:var(--muted-tint)}
.band.good{fill:var(--good-tint)}
.band.warn{fill:var(--warn-tint)}
.band.bad{fill:var(--bad-tint)}
.quiet{stroke:var(--dim);stroke-width:.6;opacity:.55;fill:none}
.level path{stroke-dasharray:5 4;fill:none}
.level.muted path{stroke:var(--muted)}
.level.bad path{stroke:var(--bad)}
svg .level text{font-size:10.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px}
svg .level.muted text{fill:var(--muted)}
svg .level.bad text{fill:var(--bad)}
svg .band-name{font-size:10.5px}
.mark rect{fill:var(--bad);opacity:.1}
.mark path{stroke:var(--bad);stroke-width:4;fill:none}
.mark.warning rect{fill:var(--warn)}
.mark.warning path{stroke:var(--warn)}
.mark.info rect{fill:var(--blue)}
.mark.info path{stroke:var(--blue)}
.other{border-left:3px solid var(--edge);padding-left:.8rem;margin:.7rem 0}
.other.critical{border-color:var(--bad)}
.other.warning{border-color:var(--warn)}
summary{cursor:pointer}
.understood{margin:.4rem 0;color:var(--dim);font-size:.92rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--edge);vertical-align:baseline}
th{font-weight:600;color:var(--dim)}
td{overflow-wrap:normal}
td.name{overflow-wrap:anywhere;min-width:9rem}
td.count,th.count{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
@media (max-width:40rem){.extra{display:none}}
@media print{body{max-width:none}article{break-inside:avoid}}
`;
