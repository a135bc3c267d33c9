import type { Plugin } from 'esbuild'

export declare const bundledAssets: Plugin
export declare const bundledAssetsOfVite: {
  readonly name: string
  readonly enforce: 'pre'
  load(id: string): Promise<string | null>
}
