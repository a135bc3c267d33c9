const REPETITION = /(.{1,12}?)\1{19,}/gsu

/** Adds a first column with a title: the row as JSON, in which `x{513}` stands for 513 times `x`. */
export function titled<Row extends readonly unknown[]>(rows: readonly Row[]): [title: string, ...Row][] {
  return rows.map((row) => [row.map(shown).join(': '), ...row])
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (_, member) => {
    if (member instanceof Uint8Array) return Buffer.from(member).toString('hex')
    return member instanceof RegExp ? `${member}` : member
  })
  return String(text).replace(REPETITION, (run, unit) => `${unit}{${run.length / unit.length}}`)
}
