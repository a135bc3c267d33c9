import theme from 'vitepress/theme'
import './colours.css'

export default theme
