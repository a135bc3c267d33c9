type Header = readonly [name: string, value: string]

/** Headers of a record, as rows of name and value. */
export function HeaderFields(props: {
  readonly headers: readonly Header[]
  readonly onChange: (headers: readonly Header[]) => void
}) {
  const { headers, onChange } = props
  const set = (index: number, header: Header) => onChange(headers.with(index, header))
  return (
    <fieldset>
      <legend>Headers</legend>
      {headers.map(([name, value], index) => (
        <div key={index} class="header-row">
          <input
            aria-label={`Name of header ${index + 1}`}
            placeholder="Name"
            required
            value={name}
            onInput={(event) => set(index, [event.currentTarget.value, value])}
          />
          <input
            aria-label={`Value of header ${index + 1}`}
            placeholder="Value"
            value={value}
            onInput={(event) => set(index, [name, event.currentTarget.value])}
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onChange(headers.toSpliced(index, 1))}
          >
            ✕
          </button>
        </div>
      ))}
      <button type="button" class="quiet" onClick={() => onChange([...headers, ['', '']])}>
        Add header
      </button>
    </fieldset>
  )
}
