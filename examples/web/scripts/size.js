// Limits what a browser loads before it shows the home timeline, and prints what is loaded later, for other screens.
import { gzipSync } from "node:zlib";

const LIMIT = 200_000;
const COUNTED = /\.(js|css)$/;

/** Return a Vite plugin that prints the sizes of a build, and fails if too much is loaded initially. */
export function size() {
  return {
    name: "size",
    apply: "build",
    writeBundle(_, bundle) {
      const names = Object.keys(bundle).filter((name) => COUNTED.test(name));
      const first = atFirst(bundle);
      const sum = (chosen) => chosen.reduce((total, name) => total + gzipped(bundle[name]), 0);
      const later = names.filter((name) => !first.has(name));
      const initial = sum([...first]);
      console.log(
        `A browser loads ${kilobytes(initial)} gzipped before it shows the timeline; the limit is ${kilobytes(LIMIT)}. ` +
          `All other screens together are ${kilobytes(sum(later))} more, in ${later.length} files.`,
      );
      if (initial > LIMIT) this.error("The code that is loaded initially is too large.");
    },
  };
}

/** Return the names of the files that the page loads initially: entries, their imports, and the styles of both. */
function atFirst(bundle) {
  const found = new Set();
  const visit = (name) => {
    if (found.has(name)) return;
    found.add(name);
    bundle[name].imports.forEach(visit);
    bundle[name].viteMetadata.importedCss.forEach((style) => found.add(style));
  };
  Object.keys(bundle).filter((name) => bundle[name].isEntry).forEach(visit);
  return found;
}

function gzipped({ code, source }) {
  return gzipSync(code ?? source).length;
}

function kilobytes(bytes) {
  return `${(bytes / 1000).toFixed(1)} KB`;
}
