/** A cell of the table: the permitted resources, or a rejection of the token. */
export interface Cell {
  readonly text: string
  /** The letters of the permitted or listed resources. */
  readonly letters: ReadonlySet<string>
  /** Letters that the token maps to a resource that does not exist. */
  readonly elsewhere: ReadonlySet<string>
  readonly isUnauthorized: boolean
  readonly isForbidden: boolean
}

export type Row = ReadonlyMap<string, Cell>

/** The rows of a table by the name of the token; a row has its cells by the name of the column. */
export function parseTable(text: string): ReadonlyMap<string, Row> {
  const columns: string[] = []
  const rows = new Map<string, Row>()
  for (const line of text.split('\n').filter((line) => line.trim() !== '')) {
    const [name = '', ...cells] = line.split('|').map((cell) => cell.trim())
    if (name === '') {
      for (const [index, title] of cells.entries()) if (title !== '') columns[index] = title
      continue
    }
    if (cells.length !== columns.length || rows.has(name)) throw new Error(`not a row of the table: ${line}`)
    rows.set(name, new Map(columns.map((column, index) => [column, parseCell(cells[index]!)])))
  }
  return rows
}

function parseCell(text: string): Cell {
  if (!/^(all|yes|-|0|401|([A-Ca-e]~?)+)$/.test(text)) throw new Error(`not a cell of the table: ${text}`)
  const letters = text === 'all' ? [...'AaBbCcde'] : /^[A-Ca-e]/.test(text) ? text.match(/[A-Ca-e]/g)! : []
  return {
    text,
    letters: new Set(letters),
    elsewhere: new Set([...text.matchAll(/([A-C])~/g)].map(([, letter]) => letter!)),
    isUnauthorized: text === '401',
    isForbidden: text === '-',
  }
}
