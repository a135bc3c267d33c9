import { printable } from './printable.ts'
import { operationGroupsText, resourceSetText } from './scope-options.ts'
import type { TokenInfo } from './token-page.ts'

const HEADINGS = ['ID', 'EXPIRES', 'BASINS', 'STREAMS', 'ACCESS TOKENS', 'OPERATIONS', 'AUTO-PREFIX']

/** A line for each token below one of headings. */
export function tokenTable(tokens: readonly TokenInfo[]): string[] {
  const rows = [HEADINGS, ...tokens.map((token) => cellsOf(token).map(printable))]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}

function cellsOf({ id, expires_at, auto_prefix_streams, scope }: TokenInfo): string[] {
  const operations = [...operationGroupsText(scope.op_groups), ...scope.ops]
  return [
    id,
    expires_at ?? 'never',
    resourceSetText(scope.basins),
    resourceSetText(scope.streams),
    resourceSetText(scope.access_tokens),
    operations.join(',') || '-',
    auto_prefix_streams ? 'yes' : 'no',
  ]
}
