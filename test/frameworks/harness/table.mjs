const LEGEND = {
  limited: 'does not work there, and fails as docs/frameworks.md says',
  '–': 'concerns what the app does not have',
}

/** Prints a row for each app and a column for each check. */
export function printTable(rows, checks) {
  const sorted = [...rows].sort((a, b) => (a.title < b.title ? -1 : 1))
  const table = [
    ['', ...checks],
    ...sorted.map(({ title, cells }) => [title, ...checks.map((c) => cells[c] ?? '–')]),
  ]
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)))
  console.log('')
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join('  '))
  console.log('')
  for (const [cell, meaning] of Object.entries(LEGEND)) {
    if (table.flat().includes(cell)) console.log(`${cell}: ${meaning}`)
  }
}
