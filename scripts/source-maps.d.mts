export interface SourceMap {
  readonly version: number
  readonly sources: readonly string[]
  readonly names: readonly string[]
  readonly mappings: string
}

export declare function reduceMap(map: SourceMap, isKept: (source: string) => boolean): SourceMap | undefined
