import theme from 'vitepress/theme'
import './colours.css'
import './text.css'

export default theme
