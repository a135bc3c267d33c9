import type { SourceMap } from './source-maps.mjs'

export declare function hoistConstants(
  code: string,
  map: SourceMap,
): { readonly code: string; readonly map: SourceMap }
