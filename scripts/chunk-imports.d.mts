import type { SourceMap } from './source-maps.mjs'

export declare function withoutBareImports(
  code: string,
  map: SourceMap,
): { readonly code: string; readonly map: SourceMap }
export declare function renameModules(directory: string): void
