export declare function apiReports(
  entries: readonly (readonly [name: string, path: string])[],
): ReadonlyMap<string, string>
