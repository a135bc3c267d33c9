/** The used part of `zstd-codec`, which ships no types. Streams stay in its memory until `delete`. */
declare module 'zstd-codec/lib/module.js' {
  export interface ZstdStream {
    /** Takes the level for compressing. As the other two, returns false if it fails. */
    begin(level?: number): boolean
    /** Passes output to the callback as it comes, in arrays of their own. */
    transform(data: Uint8Array, output: (part: Uint8Array) => void): boolean
    end(output: (part: Uint8Array) => void): boolean
    delete(): void
  }
  export interface ZstdBinding {
    readonly ZstdCompressStreamBinding: new () => ZstdStream
    readonly ZstdDecompressStreamBinding: new () => ZstdStream
  }
  const module: {
    /** Makes a new instance, with 16 MiB of memory that never grows, and calls back with it. */
    run(ready: (binding: ZstdBinding) => void): void
  }
  export default module
}
