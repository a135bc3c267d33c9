import ts from 'typescript'

/**
 * The report of each entry by its name: what it exports, without comments and in the order of the names, and
 * the declarations that these refer to and no entry exports. A declaration that several entries export is
 * part of the report of the first. `entries` are pairs of a name and the path of a declaration file.
 */
export function apiReports(entries) {
  const program = ts.createProgram(
    entries.map(([, path]) => path),
    {
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      target: ts.ScriptTarget.ES2022,
      types: [],
    },
  )
  const checker = program.getTypeChecker()
  const exportsOf = ([, path]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(path))
    return checker
      .getExportsOfModule(module)
      .map((symbol) => ({ name: symbol.name, target: targetOf(checker, symbol) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }
  const owners = new Map()
  for (const entry of entries) {
    for (const { target } of exportsOf(entry)) if (!owners.has(target)) owners.set(target, entry[0])
  }
  const own = new Set(program.getSourceFiles().filter(({ fileName }) => !fileName.includes('/node_modules/')))
  return new Map(
    entries.map((entry) => [entry[0], reportOf(entry[0], exportsOf(entry), checker, owners, own)]),
  )
}

function reportOf(name, exported, checker, owners, own) {
  const isOwn = ({ target }) => owners.get(target) === name
  const declared = exported.filter(isOwn)
  const seen = new Set(declared.map(({ target }) => target))
  const internal = []
  // Grows while it is walked: what a declaration refers to, refers to more.
  const queue = [...seen]
  for (const symbol of queue) {
    for (const declaration of declarationsOf(symbol, own)) {
      for (const referred of referencesOf(declaration, checker)) {
        if (seen.has(referred) || owners.has(referred) || declarationsOf(referred, own).length === 0) continue
        seen.add(referred)
        internal.push(referred)
        queue.push(referred)
      }
    }
  }
  const again = exported.filter((one) => !isOwn(one))
  const lines = [`# \`${name}\``, '', 'Written by `npm run check:api -- --write`.', '']
  lines.push(...blockOf(declared.map(({ target }) => textOf(target, own))))
  if (again.length > 0) {
    lines.push('', '## Exported by other entries too', '')
    lines.push(...again.map(({ name: member, target }) => `- \`${member}\` of \`${owners.get(target)}\``))
  }
  if (internal.length > 0) {
    const texts = internal.map((symbol) => textOf(symbol, own)).sort()
    lines.push('', '## Not exported, but referred to', '', ...blockOf(texts))
  }
  return `${lines.join('\n')}\n`
}

function blockOf(texts) {
  return texts.length === 0 ? ['Nothing.'] : ['```ts', texts.join('\n\n'), '```']
}

function targetOf(checker, symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** The statements of own files that declare a symbol, or none if a package does. */
function declarationsOf(symbol, own) {
  return (symbol.declarations ?? []).filter(
    (node) => own.has(node.getSourceFile()) && !ts.isTypeParameterDeclaration(node) && isTopLevel(node),
  )
}

function isTopLevel(node) {
  const statement = ts.isVariableDeclaration(node) ? node.parent.parent : node
  return ts.isSourceFile(statement.parent)
}

function referencesOf(declaration, checker) {
  const symbols = []
  const visit = (node) => {
    if (ts.isIdentifier(node)) {
      const symbol = checker.getSymbolAtLocation(node)
      if (symbol !== undefined) symbols.push(targetOf(checker, symbol))
    }
    ts.forEachChild(node, visit)
  }
  visit(declaration)
  return symbols
}

const printer = ts.createPrinter({ removeComments: true })

function textOf(symbol, own) {
  return declarationsOf(symbol, own)
    .map((node) => {
      const statement = ts.isVariableDeclaration(node) ? node.parent.parent : node
      const text = printer.printNode(ts.EmitHint.Unspecified, statement, node.getSourceFile())
      // Private members are part of a declaration, but of no API.
      return text
        .replace(/^export (default )?/, '')
        .replace(/^declare /, '')
        .replaceAll(/^\s*(#private;|private .*;)\n/gm, '')
    })
    .join('\n')
}
