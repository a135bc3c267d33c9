export declare function isPackagedSource(path: string): boolean
