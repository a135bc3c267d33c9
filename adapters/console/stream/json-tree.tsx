import { useState } from 'preact/hooks'
import { Button, CopyButton } from '../ui/elements.tsx'
import type { JsonNode } from './body.ts'
import { pathText, quotedTerm, textOfNode } from './query.ts'

type Path = readonly (string | number)[]

/** Longer arrays and objects are folded at first. */
const OPEN_ITEMS_MAX = 100
/** The depth to which the tree is open at first. Deeper values have no elements until they are opened. */
const OPEN_DEPTH = 3

/** A value as a tree. A part that is chosen can be copied and, of JSON, filtered by and shown in a column. */
export function JsonTree(props: {
  readonly root: JsonNode
  readonly onFilter?: ((term: string) => void) | undefined
  readonly onColumn?: ((column: string) => void) | undefined
}) {
  const { root, onFilter, onColumn } = props
  const [chosen, setChosen] = useState<{ readonly path: string; readonly node: JsonNode }>()
  return (
    <div class="tree">
      <Node
        node={root}
        path={[]}
        depth={0}
        onChoose={(path, node) => setChosen({ path: pathText(path), node })}
      />
      {chosen !== undefined && (
        <div class="chosen">
          <code>{chosen.path}</code>
          <CopyButton class="quiet" label="Copy value" text={() => textOfNode(chosen.node)} />
          <CopyButton class="quiet" label="Copy path" text={() => chosen.path} />
          {onColumn && (
            <Button class="quiet" onClick={() => onColumn(chosen.path)}>
              Show as column
            </Button>
          )}
          {onFilter && chosen.node.items === undefined && (
            <Button
              class="quiet"
              onClick={() => onFilter(`${chosen.path}=${quotedTerm(textOfNode(chosen.node))}`)}
            >
              Filter by it
            </Button>
          )}
        </div>
      )}
    </div>
  )
}

function Node(props: {
  readonly node: JsonNode
  readonly path: Path
  readonly depth: number
  readonly onChoose: (path: Path, node: JsonNode) => void
}) {
  const { node, path, depth, onChoose } = props
  const { text, items } = node
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && (items?.length ?? 0) <= OPEN_ITEMS_MAX)
  const key = path.at(-1)
  if (items === undefined || items.length === 0) {
    return (
      <div class="node">
        {key !== undefined && (
          <Button class="key" onClick={() => onChoose(path, node)}>
            {key}
          </Button>
        )}{' '}
        <span class={text[0] === '"' ? 'string' : 'value'}>{text}</span>
      </div>
    )
  }
  const isArray = text[0] === '['
  return (
    <details class="node" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button. */}
      <summary onClick={() => key !== undefined && onChoose(path, node)}>
        <span class="key">{key}</span>
        <span class="hint"> {isArray ? `[${items.length}]` : `{${items.length}}`}</span>
      </summary>
      {isOpen &&
        items.map(([itemName, value], index) => (
          <Node
            key={index}
            node={value}
            path={[...path, itemName ?? index]}
            depth={depth + 1}
            onChoose={onChoose}
          />
        ))}
    </details>
  )
}
