type Edits = readonly (readonly [from: string | RegExp, to: string])[]

export declare function recipeOf(app: string, edits?: Edits): Promise<ReadonlyMap<string, string>>
export declare function recipes(): Promise<readonly (readonly [app: string, path: string, code: string])[]>
