/**
 * The used part of `zstd-codec`, which ships no types. Codecs, vectors and streams live in wasm memory until
 * `delete`.
 */
declare module 'zstd-codec/lib/module.js' {
  export interface ZstdVector {
    resize(length: number, fill: number): void
    delete(): void
  }
  export interface ZstdStream {
    /** Level for compressing. Like the other two false when it fails. */
    begin(level?: number): boolean
    /** Hands output to the callback as it comes, in arrays of their own. */
    transform(data: Uint8Array, output: (part: Uint8Array) => void): boolean
    end(output: (part: Uint8Array) => void): boolean
    delete(): void
  }
  export interface ZstdBinding {
    readonly ZstdCodec: new () => {
      compressBound(length: number): number
      /** Length of the output, negative when it fails; so `decompress`. */
      compress(target: ZstdVector, source: ZstdVector, level: number): number
      decompress(target: ZstdVector, source: ZstdVector): number
      delete(): void
    }
    readonly VectorU8: new () => ZstdVector
    readonly ZstdCompressStreamBinding: new () => ZstdStream
    readonly ZstdDecompressStreamBinding: new () => ZstdStream
    cloneToVector(vector: ZstdVector, data: Uint8Array): void
    cloneAsTypedArray(vector: ZstdVector): Uint8Array
  }
  const module: {
    /** Makes a new instance, with 16 MiB of memory that never grows, and calls back with it. */
    run(ready: (binding: ZstdBinding) => void): void
  }
  export default module
}
