/** Names that other tools use for a command. */
const SYNONYMS: Readonly<Record<string, string>> = {
  cat: 'read',
  consume: 'read',
  get: 'read',
  sub: 'tail',
  subscribe: 'tail',
  follow: 'tail',
  list: 'ls',
  streams: 'ls',
  pub: 'append',
  publish: 'append',
  produce: 'append',
  write: 'append',
  add: 'append',
  rm: 'delete',
  remove: 'delete',
  describe: 'info',
  stat: 'info',
  start: 'serve',
  server: 'serve',
  mv: 'copy',
  cp: 'copy',
  context: 'contexts',
}

/** Adds where help is to a problem with what the user typed. */
export function withHelp(problem: string, command: string): string {
  return `${problem}${problem.endsWith('?') ? ' See' : '; see'} \`${command}\``
}

/** Returns `; did you mean ...?` for the known name that was probably meant, or an empty text. */
export function suggestion(typed: string, names: readonly string[]): string {
  const synonym = Object.hasOwn(SYNONYMS, typed) ? SYNONYMS[typed]! : undefined
  const name = synonym !== undefined && names.includes(synonym) ? synonym : nearest(typed, names)
  return name === undefined ? '' : `; did you mean \`${name}\`?`
}

/** Returns the name with the fewest typing errors, at most two and fewer than half of its letters. */
function nearest(typed: string, names: readonly string[]): string | undefined {
  // Longer text is not a mistyped name, and comparing it would take long.
  if (typed.length > 40) return undefined
  let best: string | undefined
  let fewest = 3
  for (const name of names) {
    const letters = name.replace(/^--(no-)?/, '').length
    const errors = typingErrors(typed, name)
    if (errors < fewest && 2 * errors < letters) {
      best = name
      fewest = errors
    }
  }
  return best
}

/** Counts the letters to insert, delete, replace or swap: the optimal string alignment distance. */
function typingErrors(typed: string, name: string): number {
  let before: number[] = []
  let last = Array.from({ length: name.length + 1 }, (_, at) => at)
  for (let i = 1; i <= typed.length; i++) {
    const row = [i]
    for (let k = 1; k <= name.length; k++) {
      const differs = typed[i - 1] === name[k - 1] ? 0 : 1
      let errors = Math.min(last[k]! + 1, row[k - 1]! + 1, last[k - 1]! + differs)
      const isSwap = i > 1 && k > 1 && typed[i - 1] === name[k - 2] && typed[i - 2] === name[k - 1]
      if (isSwap) errors = Math.min(errors, before[k - 2]! + 1)
      row.push(errors)
    }
    before = last
    last = row
  }
  return last[name.length]!
}
