/** What a child tells of a scenario. */
export interface Report {
  /** Kinds of things of which there were more or fewer after the rounds than before, as `before → after`. */
  readonly left: Readonly<Record<string, string>>
  /** The same, when all was closed and before anything was opened. */
  readonly leftAtEnd: Readonly<Record<string, string>>
  /** How much more memory is in use than before, but for what the storage keeps. */
  readonly grownBytes: number
  readonly grownBytesMax: number
  /** How much more it was at most. */
  readonly peakBytes: number
  readonly budgetBytes: number
  /** Of Node, such as of too many listeners. */
  readonly warnings: readonly string[]
  /** What the owner of the engine, of the handler and of the server was told. */
  readonly errors: readonly string[]
}

/** What is wrong in a report, in words. */
export function problemsOf(report: Report): string[] {
  const { grownBytes, grownBytesMax, peakBytes, budgetBytes } = report
  const left = (things: Readonly<Record<string, string>>, when: string) =>
    Object.entries(things).map(([kind, counts]) => `${kind} ${when}: ${counts}`)
  return [
    ...left(report.left, 'after the rounds'),
    ...left(report.leftAtEnd, 'when all is closed'),
    ...(grownBytes > grownBytesMax ? [`${grownBytes} bytes more in use, of at most ${grownBytesMax}`] : []),
    ...(peakBytes > budgetBytes ? [`${peakBytes} bytes in use at once, of at most ${budgetBytes}`] : []),
    ...report.warnings.map((warning) => `a warning: ${warning}`),
    ...report.errors.map((error) => `an error: ${error}`),
  ]
}
