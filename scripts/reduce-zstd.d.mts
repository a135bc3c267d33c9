export declare function reduceZstd(wasm: Uint8Array): Buffer
