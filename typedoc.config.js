/** `npm run docs:api`: docs/api, the reference of what the package exports, a page for each of its doors. */
import { readFileSync } from 'node:fs';
import { Converter } from 'typedoc';

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

/** The source file of each door, and its page: `src/envs/cluster/index.ts` and `cluster`, for `keel/cluster`. */
const doors = Object.entries(exports).flatMap(([subpath, { default: built }]) =>
  built === undefined
    ? []
    : [{ file: built.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts'), page: subpath.slice(2) || 'keel' }],
);

/** Pages are called as the doors are, whatever folder is behind them. */
function nameByDoor({ converter }) {
  converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children) {
      const door = doors.find(({ file }) => file.replace(/^src\/|(\/index)?\.ts$/g, '') === module.name);
      if (door === undefined) throw new Error(`${module.name} is no door of the package`);
      module.name = door.page;
    }
  });
}

/** @type {import('typedoc').TypeDocOptions & import('typedoc-plugin-markdown').PluginOptions} */
export default {
  plugin: ['typedoc-plugin-markdown', nameByDoor],
  tsconfig: 'tsconfig.build.json',
  entryPoints: doors.map(({ file }) => file),
  out: 'docs/api',
  readme: 'none',
  name: 'The API of Keel',
  // `npm run check` has looked.
  skipErrorChecking: true,
  // What Error and Node's own types have is told elsewhere.
  excludeExternals: true,
  excludePrivate: true,
  // Types that stand in signatures and that nobody needs by name.
  validation: { notExported: false },
  // Lines move with every change, and would make every page another.
  disableSources: true,
  router: 'module',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  pageTitleTemplates: { module: ({ name }) => (name === 'keel' ? name : `keel/${name}`) },
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  propertyMembersFormat: 'table',
  enumMembersFormat: 'table',
  tableColumnSettings: { leftAlignHeaders: true },
};
